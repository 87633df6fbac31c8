"""Giving jobs to workers: which one is next, for how long, and what if it is lost."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from . import keys, states
from .changes import Changes
from .due import make_due
from .lease import Delay, Token
from .record import Dead, Failure, Lease, Nack
from .states import Row
from .store import Store
from .transaction import Transaction

#: What the history says of a lease that nobody settled in time.
LOST = Failure(type="LeaseExpired", message="lease expired: worker lost")
#: Expired leases taken back in one transaction, so that it stays short.
_EXPIRED_AT_ONCE = 200
#: Jobs that wait for a sync are few, unless somebody enqueues without any: then one
#: sync for all is better than looking at each of them under the lock.
_NOT_DURABLE_PASSED_OVER = 200
#: Waiting retries looked at under the lock to find one of certain queues.
_RETRIES_LOOKED_AT = 500


@dataclass(frozen=True, slots=True)
class Claimed:
    """One job, leased to the caller until ``until`` (boot clock, seconds)."""

    position: int
    row: Row
    queue: str
    kind: str
    token: Token
    until: float


@dataclass(frozen=True, slots=True)
class Claim:
    """What one look for work found."""

    jobs: Sequence[Claimed] = ()
    lost: int = 0  # leases that had run out and were taken back
    next_due: float | None = None  # boot clock; None = nothing is waiting for a time
    not_durable: int = 0  # a job there waits for the sync of its enqueue; its position
    retries: bool = False  # a failed job of these queues waits for its next attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a worker asks for."""

    queues: Sequence[str] | None  # None = every queue
    exclude: frozenset[str] = frozenset()
    count: int = 1
    sharers: int = 1  # threads that look for work like this one: few jobs are spread
    careful: bool = False  # see _is_delicate
    seconds: float = 30.0
    seconds_of: Callable[[str], float] | None = None  # by queue, instead of one for all
    worker: str = ""
    delay: Delay  # of a retry, for leases found expired
    durable_only: bool = True
    asks_for_retries: bool = False  # whether Claim.retries is wanted
    sleep_slots: tuple[int, ...] = ()  # where to say that the caller will sleep ...
    sleep_seconds: float = 0.0  # ... for so long, if nothing is found


def claim(store: Store, wish: Wish, *, timeout: float) -> Claim:
    """Lease up to ``wish.count`` due jobs, highest priority first.

    Only jobs whose enqueue is durable are given out; if all that is there still
    waits for its sync, it is synced first. The lease itself needs no sync: if a
    power cut loses it, the job was never given to anybody.
    """
    found = store.run(lambda tx: _decide(tx, wish), timeout=timeout, durable=False)
    if not found.jobs and found.not_durable:
        store.commit(found.not_durable)
        found = store.run(lambda tx: _decide(tx, wish), timeout=timeout, durable=False)
    return found


def _decide(transaction: Transaction, wish: Wish) -> Claim:
    changes = transaction.changes
    wall, boot = transaction.clock.wall(), transaction.clock.boot()
    changes.flush()
    if make_due(changes, wall=wall, boot=boot):
        changes.flush()
    lost = _take_back(transaction, changes, wish, wall=wall, boot=boot)
    chosen: list[tuple[int, Row]] = []
    waiting = passed_over = 0
    numbers = _numbers(changes, wish)
    count = _fair_count(changes, wish, numbers)
    for position in _in_order(changes, numbers):
        row = changes.row(position)
        if row is None or row.state != states.READY:
            continue
        if wish.durable_only and row.data >= transaction.durable:
            waiting = waiting or row.data + row.size
            passed_over += 1
            if passed_over == _NOT_DURABLE_PASSED_OVER:
                break
            continue
        delicate = wish.careful and _is_delicate(row)
        if delicate and chosen:
            break
        chosen.append((position, row))
        if delicate or len(chosen) == count:
            break
    if not chosen:
        transaction.sleep(wish.sleep_slots, boot + wish.sleep_seconds)
        due = _next_due(changes, wall=wall, boot=boot)
        return Claim(
            lost=lost,
            next_due=due,
            not_durable=waiting,
            retries=wish.asks_for_retries and _any_retry(changes, set(numbers)),
        )
    names = changes.names
    until = [boot + _seconds(wish, names.queues[row.queue]) for _, row in chosen]
    leases = [
        Lease(
            job=position,
            prev=row.last,
            t=wall,
            until=moment,
            worker=wish.worker,
            attempt=row.attempts + 1,
        )
        for (position, row), moment in zip(chosen, until, strict=True)
    ]
    transaction.add(leases)
    return Claim(
        jobs=[
            Claimed(
                position,
                row,
                names.queues[row.queue],
                names.kinds[row.kind],
                Token(row.epoch, row.token),
                row.until,
            )
            for position, row in chosen
        ],
        lost=lost,
    )


def _fair_count(changes: Changes, wish: Wish, queues: Sequence[int]) -> int:
    """Return how many jobs to give out, leaving their share to the other threads."""
    if wish.count == 1 or wish.sharers == 1:
        return wish.count
    ready = sum(changes.counts(queue)[keys.READY_SLOT] for queue in queues)
    return max(1, min(wish.count, ready // wish.sharers))


def _is_delicate(row: Row) -> bool:
    """Tell a job that a careful worker takes alone.

    A job that kills its worker takes an attempt from all that were leased with it.
    A job that was tried before may be that one, and a job with a single attempt
    would be dead by the fault of another.
    """
    return row.attempts > 0 or row.max_attempts == 1


def _seconds(wish: Wish, queue: str) -> float:
    return wish.seconds if wish.seconds_of is None else wish.seconds_of(queue)


def _numbers(changes: Changes, wish: Wish) -> list[int]:
    names = changes.names.queues
    if wish.queues is None:
        return [number for number, name in enumerate(names) if name not in wish.exclude]
    wanted = set(wish.queues) - wish.exclude
    return [number for number, name in enumerate(names) if name in wanted]


def _in_order(changes: Changes, queues: Iterable[int]) -> Iterator[int]:
    """Yield ready jobs of several queues: priority, availability, insertion."""
    orders = [
        changes.entries(keys.queue_prefix(keys.READY, queue))
        for queue in queues
        if changes.counts(queue)[keys.READY_SLOT]
    ]
    if len(orders) == 1:
        entries: Iterable[bytes] = orders[0]
    else:
        # What follows the queue's number in an entry sorts as jobs are taken.
        entries = heapq.merge(*orders, key=lambda entry: entry[keys.QUEUE_END :])
    for entry in entries:
        yield keys.position_of(entry)


def _take_back(
    transaction: Transaction, changes: Changes, wish: Wish, *, wall: float, boot: float
) -> int:
    """Let expired leases end: retried with backoff, or dead when attempts are used up."""
    expired = []
    for entry in changes.entries(keys.LEASED):
        born, until = keys.timed_parts(entry)
        if born == changes.meta.generation and until > boot:
            break
        expired.append(keys.position_of(entry))
        if len(expired) == _EXPIRED_AT_ONCE:
            break
    records: list[Nack | Dead] = []
    for position in expired:
        row = changes.row(position)
        if row is None:
            continue
        if row.attempts >= row.max_attempts:
            records.append(
                Dead(job=position, prev=row.last, t=wall, error=LOST, reason="lost")
            )
            continue
        queue = changes.names.queues[row.queue]
        delay = wish.delay(queue, row.attempts)
        records.append(
            Nack(
                job=position,
                prev=row.last,
                t=wall,
                delay=delay,
                until=boot + delay,
                error=LOST,
                lost=True,
            )
        )
        if delay <= 0:
            transaction.ring(queue)
    if records:
        transaction.add(records)
        changes.flush()
    return len(records)


def _next_due(changes: Changes, *, wall: float, boot: float) -> float | None:
    """Return when the next delay, retry or lease runs out, on the boot clock."""
    moments = []
    for order in (keys.WALL, keys.BOOT, keys.LEASED):
        entry = next(changes.entries(order), None)
        if entry is not None:
            moment = keys.timed_parts(entry)[1]
            moments.append(boot + moment - wall if order == keys.WALL else moment)
    return min(moments, default=None)


def _any_retry(changes: Changes, queues: set[int]) -> bool:
    """Tell whether a retry of these queues waits; a long line of others counts, too."""
    waiting = list(islice(changes.entries(keys.BOOT), _RETRIES_LOOKED_AT))
    rows = (changes.row(keys.position_of(entry)) for entry in waiting)
    if any(row is not None and row.queue in queues for row in rows):
        return True
    return len(waiting) == _RETRIES_LOOKED_AT


def damaged(claimed: Claimed) -> Failure:
    """Return the reason of a job whose payload cannot be read from the log any more."""
    return Failure(
        type="DamagedRecord",
        message=f"the payload's record at position {claimed.row.data} is damaged",
    )
