"""New jobs: one, many, with or without an id of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import Raw

from . import capacity, history, states
from .changes import Changes
from .errors import DuplicateJobError
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


#: What stands for a job that was to be enqueued: its own record, or that of the job
#: that came before it.
Answer = Enqueue | Duplicate


def place(
    store: Store,
    jobs: Sequence[Enqueue],
    *,
    durable: bool,
    timeout: float,
    most: Mapping[str, int] | None = None,
    blocking: float | None = None,
    alike: bool = False,
) -> Sequence[Answer]:
    """Enqueue all of them or none; a given id that exists is answered, not repeated.

    The records are returned with their ids and positions. Without given ids and
    a limit the index is not touched at all. ``most`` says by queue how many jobs may
    be ready, delayed or leased; beyond that ``QueueFull`` is raised and nothing is
    written. ``blocking`` is for how many seconds the id of a finished job is still
    answered; None: for ever. With ``alike``, an id that exists with another payload
    raises ``DuplicateJobError``, and nothing is written.
    """
    if not most and not any([job.given for job in jobs]):  # noqa: C419 - faster
        return place_plainly(store, jobs, durable=durable, timeout=timeout)
    wanted = [_print(job) for job in jobs] if alike else []
    # Of jobs that exist. A payload is for ever, so it is read before the lock is taken
    # again; what became of its job meanwhile is seen then.
    prints: dict[int, str] = {}

    def decide(
        transaction: Transaction,
    ) -> tuple[Sequence[Answer], Sequence[Duplicate]]:
        free = None if blocking is None else transaction.clock.wall() - blocking
        answers = _answers(transaction.changes, jobs, free)
        if alike:
            unread = [
                answer
                for answer in answers
                if isinstance(answer, Duplicate) and answer.position not in prints
            ]
            if unread:
                return (), unread
            _check_alike(jobs, answers, wanted, prints)
        fresh = [
            job for job, answer in zip(jobs, answers, strict=True) if job is answer
        ]
        for queue, limit in (most or {}).items():
            more = sum(job.queue == queue for job in fresh)
            if more:
                capacity.check(transaction.changes, queue, more, limit)
        if fresh:
            transaction.add(fresh)
            for queue in {job.queue for job in fresh}:
                transaction.ring(queue)
        return answers, ()

    while True:
        answers, unread = store.run(
            decide, durable=durable, timeout=timeout, indexed=True
        )
        if not unread:
            return answers
        for known in unread:
            prints[known.position] = history.fingerprint(
                store, known.position, known.row
            )


def differs(store: Store, job: Enqueue, answer: Answer) -> bool:
    """Tell whether the job that answers an enqueue has another payload than it.

    One whose payload is damaged counts as another.
    """
    if isinstance(answer, Enqueue):
        return answer is not job and _print(answer) != _print(job)
    return history.fingerprint(store, answer.position, answer.row) != _print(job)


def _print(job: Enqueue) -> str:
    return history.print_of(job.kind, bytes(job.payload))


def _answers(
    changes: Changes, jobs: Sequence[Enqueue], free: float | None
) -> list[Answer]:
    """Return for each job what stands for it: itself, its twin, or one that exists."""
    answers: list[Answer] = []
    in_batch: dict[tuple[str, str], Enqueue] = {}
    for job in jobs:
        if not job.given:
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
        answers.append(job)
    return answers


def _check_alike(
    jobs: Sequence[Enqueue],
    answers: Sequence[Answer],
    wanted: Sequence[str],
    prints: Mapping[int, str],
) -> None:
    by_job = {id(job): one for job, one in zip(jobs, wanted, strict=True)}
    for job, answer, one in zip(jobs, answers, wanted, strict=True):
        known = (
            prints[answer.position]
            if isinstance(answer, Duplicate)
            else by_job[id(answer)]
        )
        if one != known:
            raise DuplicateJobError(
                f"The job {job.id} is known to the queue {job.queue} already, with "
                "another payload; nothing was enqueued.",
                job.id,
            )


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
