"""What becomes of a leased job: every end of an attempt, and its prolonging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import UNSET, Raw

from . import states
from .changes import Changes
from .errors import JobNotFoundError, NotLeasedError
from .lease import Delay, Token, extended_deadline, heartbeat_deadline
from .record import (
    Ack,
    AnyRecord,
    Dead,
    Extend,
    Failure,
    Nack,
    Release,
)
from .states import Row
from .store import Store
from .transaction import Transaction

#: Why a job is dead.
ATTEMPTS, REJECTED = "attempts", "rejected"
UNREADABLE, UNDECODABLE = "unreadable", "undecodable"


class Held(NamedTuple):
    """The proof that a job was leased: its number and the fencing token."""

    position: int
    token: Token


@dataclass(frozen=True, slots=True)
class Settled:
    """The job after an attempt ended; ``delay`` is the wait until its retry."""

    row: Row
    delay: float | None = None


def _held(changes: Changes, held: Held) -> Row:
    return _checked(changes.row(held.position), held)


def _sorted_out(
    changes: Changes, held: Sequence[Held]
) -> tuple[list[tuple[Held, Row]], list[Held]]:
    """Return the leases that are held still, with their jobs, and the lost ones."""
    kept: list[tuple[Held, Row]] = []
    lost: list[Held] = []
    for one in held:
        try:
            kept.append((one, _held(changes, one)))
        except (NotLeasedError, JobNotFoundError):
            lost.append(one)
    return kept, lost


def _checked(row: Row | None, held: Held) -> Row:
    if row is None:
        msg = "The job is not in the store any more."
        raise JobNotFoundError(msg)
    if row.state != states.LEASED or row.lease_token != held.token:
        msg = f"The lease of job {row.id} is not held any more."
        raise NotLeasedError(msg)
    return row


def ack(
    store: Store, held: Held, *, result: bytes | None, durable: bool, timeout: float
) -> Row:
    """Finish a job; repeating it with the token that finished it changes nothing."""

    def decide(transaction: Transaction) -> Row:
        row, record = _acknowledged(transaction, held, result)
        if record is not None:
            transaction.add([record])
        return row

    return store.run(decide, durable=durable, timeout=timeout)


def ack_all(
    store: Store,
    ended: Sequence[tuple[Held, bytes | None]],
    *,
    durable: bool,
    timeout: float,
) -> list[Held]:
    """Finish several jobs, each with its result; return those whose lease is lost.

    It is one transaction and one sync for all of them.
    """

    def decide(transaction: Transaction) -> list[Held]:
        lost: list[Held] = []
        records: list[AnyRecord] = []
        for held, result in ended:
            try:
                _, record = _acknowledged(transaction, held, result)
            except (NotLeasedError, JobNotFoundError):
                lost.append(held)
                continue
            if record is not None:
                records.append(record)
        if records:
            transaction.add(records)
        return lost

    return store.run(decide, durable=durable, timeout=timeout)


def _acknowledged(
    transaction: Transaction, held: Held, result: bytes | None
) -> tuple[Row, Ack | None]:
    """Return the job and the record that finishes it; None if that was written."""
    changes = transaction.changes
    row = changes.row(held.position)
    if (
        row is not None
        and row.state in (states.DONE, states.FORGOTTEN)
        and row.lease_token == held.token
    ):
        return row, None
    row = _checked(row, held)
    return row, Ack(
        job=held.position,
        prev=row.last,
        t=transaction.clock.wall(),
        result=UNSET if result is None else Raw(result),
    )


def nack(
    store: Store,
    held: Held,
    *,
    error: Failure,
    delay: float | None,
    backoff: Delay,
    durable: bool,
    timeout: float,
) -> Settled:
    """End an attempt in failure: a retry after ``delay`` (None = the backoff), or dead."""

    def decide(transaction: Transaction) -> Settled:
        changes = transaction.changes
        row = _held(changes, held)
        now = transaction.clock.wall()
        if row.attempts >= row.max_attempts:
            transaction.add(
                [
                    Dead(
                        job=held.position,
                        prev=row.last,
                        t=now,
                        error=error,
                        reason=ATTEMPTS,
                    )
                ]
            )
            return Settled(row)
        queue = changes.names.queues[row.queue]
        wait = backoff(queue, row.attempts) if delay is None else max(0.0, delay)
        until = transaction.clock.boot() + wait
        transaction.add(
            [
                Nack(
                    job=held.position,
                    prev=row.last,
                    t=now,
                    delay=wait,
                    until=until,
                    error=error,
                )
            ]
        )
        transaction.ring(queue)
        return Settled(row, wait)

    return store.run(decide, durable=durable, timeout=timeout)


def bury(
    store: Store,
    held: Held,
    *,
    error: Failure,
    reason: str,
    durable: bool,
    timeout: float,
) -> Row:
    """Send a job to the dead letters, whatever attempts it has left."""

    def decide(transaction: Transaction) -> Row:
        row = _held(transaction.changes, held)
        now = transaction.clock.wall()
        transaction.add(
            [Dead(job=held.position, prev=row.last, t=now, error=error, reason=reason)]
        )
        return row

    return store.run(decide, durable=durable, timeout=timeout)


def release(store: Store, held: Held, *, durable: bool, timeout: float) -> Row:
    """Give a job back; the attempt does not count and the job is due at once."""

    def decide(transaction: Transaction) -> Row:
        changes = transaction.changes
        row = _held(changes, held)
        transaction.add(
            [Release(job=held.position, prev=row.last, t=transaction.clock.wall())]
        )
        transaction.ring(changes.names.queues[row.queue])
        return row

    return store.run(decide, durable=durable, timeout=timeout)


def release_all(
    store: Store, held: Sequence[Held], *, durable: bool, timeout: float
) -> list[Held]:
    """Give several jobs back at once; return those whose lease is lost."""

    def decide(transaction: Transaction) -> list[Held]:
        changes = transaction.changes
        kept, lost = _sorted_out(changes, held)
        now = transaction.clock.wall()
        records: list[AnyRecord] = []
        for one, row in kept:
            records.append(Release(job=one.position, prev=row.last, t=now))
            transaction.ring(changes.names.queues[row.queue])
        if records:
            transaction.add(records)
        return lost

    return store.run(decide, durable=durable, timeout=timeout)


def extend(store: Store, held: Held, seconds: float, *, timeout: float) -> Row:
    """Give the holder at least ``seconds`` from now; a lease never gets shorter."""

    def decide(transaction: Transaction) -> Row:
        changes = transaction.changes
        row = _held(changes, held)
        current = _deadline(changes, row)
        until = extended_deadline(current, transaction.clock.boot(), seconds)
        transaction.add([_extension(transaction, held, row, until)])
        return row

    return store.run(decide, durable=False, timeout=timeout)


def heartbeat(
    store: Store, held: Sequence[Held], seconds: float, *, timeout: float
) -> list[Held]:
    """Set each deadline to ``seconds`` from now; return those whose lease is lost.

    An explicit extension that reaches further is left alone.
    """

    def decide(transaction: Transaction) -> list[Held]:
        changes = transaction.changes
        until = heartbeat_deadline(transaction.clock.boot(), seconds)
        kept, lost = _sorted_out(changes, held)
        records: list[AnyRecord] = [
            _extension(transaction, one, row, until)
            for one, row in kept
            if _deadline(changes, row) < until
        ]
        if records:
            transaction.add(records)
        return lost

    return store.run(decide, durable=False, timeout=timeout)


def _deadline(changes: Changes, row: Row) -> float:
    """Return when a lease ends; one of another boot has ended, whatever it says."""
    return row.until if row.generation == changes.meta.generation else 0.0


def _extension(transaction: Transaction, held: Held, row: Row, until: float) -> Extend:
    return Extend(
        job=held.position, prev=row.last, t=transaction.clock.wall(), until=until
    )
