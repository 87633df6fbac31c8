"""New jobs: one, many, with or without an id of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import Raw

from . import capacity, states
from .record import Enqueue
from .states import Row
from .store import Store
from .transaction import Transaction

_ID_BYTES = 10
_POOL = 128

# Random halves of ids, made many at a time because asking the kernel is dear.
# Taking one off a list is a single step, so threads need no lock here.
_pool: list[str] = []


def random_part() -> str:
    """Return 20 hexadecimal digits that nobody can guess."""
    try:
        return _pool.pop()
    except IndexError:
        first, *rest = random_parts(_POOL)
        _pool.extend(rest)
        return first


os.register_at_fork(after_in_child=_pool.clear)


def random_parts(number: int) -> list[str]:
    """Return many of them at once."""
    digits = os.urandom(_ID_BYTES * number).hex()
    width = 2 * _ID_BYTES
    return [digits[i : i + width] for i in range(0, len(digits), width)]


def new(  # noqa: PLR0913 - the fields of a record
    *,
    queue: str,
    payload: bytes,
    now: float,
    max_attempts: int,
    priority: int = 0,
    due: float | None = None,
    kind: str = "",
    job_id: str | None = None,
    scope: str = "queue",
) -> Enqueue:
    """Return the record of a job that is not placed yet.

    ``payload`` is JSON text; ``due`` a wall-clock second, None for at once; ``scope``
    where a given ``job_id`` is unique, ``queue`` or ``store``.
    """
    return Enqueue(
        id=random_part() if job_id is None else job_id,
        given="" if job_id is None else scope,
        queue=queue,
        t=now,
        priority=priority,
        due=due if due is not None and due > now else None,
        max=max_attempts,
        kind=kind,
        payload=Raw(payload),
    )


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A job of that id is there already; nothing was enqueued for it."""

    position: int
    row: Row


def place(
    store: Store,
    jobs: Sequence[Enqueue],
    *,
    durable: bool,
    timeout: float,
    most: Mapping[str, int] | None = None,
    blocking: float | None = None,
) -> Sequence[Enqueue | Duplicate]:
    """Enqueue all of them or none; a given id that exists is answered, not repeated.

    The records are returned with their ids and positions. Without given ids and
    a limit the index is not touched at all. ``most`` says by queue how many jobs may
    be ready, delayed or leased; beyond that ``QueueFull`` is raised and nothing is
    written. ``blocking`` is for how many seconds the id of a finished job is still
    answered; None: for ever.
    """
    if not most and not any([job.given for job in jobs]):  # noqa: C419 - faster
        return place_plainly(store, jobs, durable=durable, timeout=timeout)

    def decide(transaction: Transaction) -> Sequence[Enqueue | Duplicate]:
        changes = transaction.changes
        free = None if blocking is None else transaction.clock.wall() - blocking
        answers: list[Enqueue | Duplicate] = []
        fresh: list[Enqueue] = []
        in_batch: dict[tuple[str, str], Enqueue] = {}
        for job in jobs:
            if not job.given:
                fresh.append(job)
                answers.append(job)
                continue
            key = ("" if job.given == "store" else job.queue, job.id)
            twin = in_batch.get(key)
            if twin is not None:
                answers.append(twin)
                continue
            known = changes.known(job.queue, job.given, job.id)
            if known is not None and not _is_free(known[1], free):
                answers.append(Duplicate(*known))
                continue
            in_batch[key] = job
            fresh.append(job)
            answers.append(job)
        for queue, limit in (most or {}).items():
            more = sum(job.queue == queue for job in fresh)
            if more:
                capacity.check(changes, queue, more, limit)
        if fresh:
            transaction.add(fresh)
            for queue in {job.queue for job in fresh}:
                transaction.ring(queue)
        return answers

    return store.run(decide, durable=durable, timeout=timeout, indexed=True)


def _is_free(row: Row, until: float | None) -> bool:
    """Tell whether a job finished so long ago that its id may be given again."""
    finished = row.state in (states.DONE, states.DISCARDED, states.FORGOTTEN)
    return finished and until is not None and row.finished_at < until


def place_plainly(
    store: Store, jobs: Sequence[Enqueue], *, durable: bool, timeout: float
) -> Sequence[Enqueue]:
    """Enqueue jobs without given ids and without a limit: nothing to look up."""
    if len(jobs) == 1:
        append = store.append_durably if durable else store.append
        append(jobs[0], timeout)
        return jobs

    def decide(transaction: Transaction) -> None:
        transaction.add(jobs)
        for queue in {job.queue for job in jobs}:
            transaction.ring(queue)

    store.run(decide, durable=durable, timeout=timeout, indexed=False)
    return jobs
