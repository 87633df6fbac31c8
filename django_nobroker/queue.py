"""The plain face: a named queue of a store, for scripts without Django.

It turns Python values into jobs and back; every decision is the engine's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from . import limits, payload
from .engine import claim, doorbell, enqueue, history, keys, settle
from .engine.enqueue import Duplicate
from .engine.errors import (
    JobNotFoundError,
    NotLeasedError,
    QueueClosedError,
    QueueEmpty,
    QueueFull,
)
from .engine.record import Enqueue, Failure
from .engine.recovery import RecoveryReport
from .engine.settle import Held
from .engine.states import Row
from .engine.store import Store, close_store, open_store
from .engine.tables import Tables
from .engine.vfs import Access
from .job import Job, JobState
from .retry import BackoffPolicy

T = TypeVar("T")

_STATES = (
    JobState.READY,
    JobState.LEASED,
    JobState.DONE,
    JobState.DEAD,
    JobState.DISCARDED,
)
# A producer that waits for room looks again after these seconds, doubling.
_FIRST_LOOK, _LONGEST_LOOK = 0.01, 0.25
# A lease that waits looks again by itself, should a wake-up be missed.
_FALLBACK = 1.0
_MESSAGE_LIMIT = 4000


@dataclass(frozen=True, slots=True)
class QueueStats:
    """How many jobs are in which state now; ``total`` is the sum."""

    ready: int
    delayed: int
    leased: int
    done: int
    dead: int
    total: int


class Queue(Generic[T]):
    """A named queue in the store at ``path``; the directory is made if missing.

    Any number of threads and processes of one machine may open it. When
    ``enqueue`` returns, the job is on disk; with ``fsync=False`` it is only handed
    to the operating system, and a power cut may lose it.
    """

    def __init__(  # noqa: PLR0913 - the options of a queue, as documented
        self,
        path: str | os.PathLike[str],
        name: str = "default",
        *,
        fsync: bool = True,
        visibility_timeout: float = 30.0,
        max_attempts: int = 5,
        backoff: BackoffPolicy | None = None,
        lock_timeout: float = 10.0,
        max_pending: int | None = None,
        file_mode: int = 0o660,
        group: str | int | None = None,
        index_directory: str | os.PathLike[str] | None = None,
    ) -> None:
        """Open the store, repairing what a crash left; see :attr:`recovery`."""
        self.name = limits.name(name, "name")
        self.visibility_timeout = limits.seconds(
            visibility_timeout, "visibility_timeout", above=0
        )
        self.max_attempts = limits.whole(max_attempts, "max_attempts", at_least=1)
        self.lock_timeout = max(0.0, limits.seconds(lock_timeout, "lock_timeout"))
        if max_pending is not None:
            limits.whole(max_pending, "max_pending", at_least=1)
        self.max_pending = max_pending
        self.backoff = BackoffPolicy() if backoff is None else backoff
        self.fsync = bool(fsync)
        if index_directory is None:
            index_directory = os.environ.get("NOBROKER_INDEX_DIR") or None
        self._store = open_store(
            path,
            access=Access.of(file_mode, group),
            index_root=None
            if index_directory is None
            else str(Path(index_directory).absolute()),
            lock_timeout=self.lock_timeout,
        )
        self._closed = False
        self._clock = self._store.clock

    # --- adding work --------------------------------------------------------

    def enqueue(
        self,
        payload: T,
        *,
        priority: int = 0,
        delay: float = 0.0,
        max_attempts: int | None = None,
        job_id: str | None = None,
        block: bool = True,
        timeout: float | None = None,
    ) -> Job[T]:
        """Add one job; durable when it returns.

        ``priority``: higher first. ``delay``: seconds until it is due. ``job_id``: a
        second job of that id is not added, the first is returned. When the queue is
        full, waits up to ``timeout`` seconds (None = for ever) for room, or raises
        ``QueueFull`` at once with ``block=False``.

        Raises ``SerializationError``, ``QueueFull``, ``StorageError``.
        """
        ids = None if job_id is None else [job_id]
        return self._enqueue(
            [payload], priority, delay, max_attempts, ids, block, timeout
        )[0]

    def enqueue_many(
        self,
        payloads: Iterable[T],
        *,
        priority: int = 0,
        delay: float = 0.0,
        max_attempts: int | None = None,
        job_ids: Sequence[str | None] | None = None,
        block: bool = True,
        timeout: float | None = None,
    ) -> list[Job[T]]:
        """Add all of the jobs or none, with one write and one sync.

        The options hold for every job; ``job_ids`` names them one by one.
        """
        return self._enqueue(
            list(payloads), priority, delay, max_attempts, job_ids, block, timeout
        )

    def _enqueue(
        self,
        payloads: list[T],
        priority: int,
        delay: float,
        max_attempts: int | None,
        job_ids: Sequence[str | None] | None,
        block: bool,
        timeout: float | None,
    ) -> list[Job[T]]:
        store = self.opened()
        now = self._clock.wall()
        due = None
        if priority:
            limits.priority(priority)
        if delay != 0:
            due = now + limits.delay(delay, now)
        attempts = self.max_attempts
        if max_attempts is not None:
            attempts = limits.whole(max_attempts, "max_attempts", at_least=1)
        if job_ids is not None:
            if len(job_ids) != len(payloads):
                msg = f"{len(payloads)} payloads, but {len(job_ids)} job_ids."
                raise ValueError(msg)
            for job_id in job_ids:
                if job_id is not None:
                    limits.name(job_id, "job_id")
        deadline = None
        if timeout is not None:
            deadline = time.monotonic() + max(0.0, limits.seconds(timeout, "timeout"))
        if not payloads:
            return []
        name = self.name
        encode = payload.encode
        new = enqueue.new
        back: list[Any] = []
        records = []
        for number, value in enumerate(payloads):
            text, read = encode(value)
            back.append(read)
            records.append(
                new(
                    queue=name,
                    payload=text,
                    now=now,
                    max_attempts=attempts,
                    priority=priority,
                    due=due,
                    job_id=None if job_ids is None else job_ids[number],
                )
            )
        answers = self._place(store, records, block, deadline)
        return [
            self._new_job(answer, read)
            if isinstance(answer, Enqueue)
            else self._known(answer)
            for answer, read in zip(answers, back, strict=True)
        ]

    def _place(
        self, store: Store, records: list[Enqueue], block: bool, deadline: float | None
    ) -> Sequence[Enqueue | Duplicate]:
        pause = _FIRST_LOOK
        while True:
            try:
                return enqueue.place(
                    store,
                    records,
                    durable=self.fsync,
                    timeout=self.lock_timeout,
                    max_pending=self.max_pending,
                )
            except enqueue.NeverFits:
                raise
            except QueueFull:
                left = None if deadline is None else deadline - time.monotonic()
                if not block or (left is not None and left <= 0):
                    raise
                time.sleep(pause if left is None else min(pause, left))
                pause = min(2 * pause, _LONGEST_LOOK)
                self.opened()

    def _new_job(self, record: Enqueue, value: Any) -> Job[T]:
        return Job(
            id=record.id,
            payload=value,
            queue=record.queue,
            priority=record.priority,
            state=JobState.READY,
            attempts=0,
            max_attempts=record.max,
            available_at=record.t if record.due is None else record.due,
            enqueued_at=record.t,
            position=record.at,
            owner=self,
        )

    def _known(self, duplicate: Duplicate) -> Job[T]:
        return self._job(duplicate.position, duplicate.row)

    # --- taking and finishing work --------------------------------------------

    def lease(
        self,
        count: int = 1,
        *,
        visibility_timeout: float | None = None,
        wait: float | None = None,
    ) -> list[Job[T]]:
        """Lease up to ``count`` due jobs, fewer or none if there are not so many.

        Nobody else gets them for ``visibility_timeout`` seconds. ``wait``: seconds
        to wait for the first one (None or 0 = not at all).
        """
        limits.whole(count, "count", at_least=1)
        timeout = self.visibility_timeout
        if visibility_timeout is not None:
            timeout = limits.seconds(visibility_timeout, "visibility_timeout", above=0)
        if not wait:
            return self._lease(count, timeout, (), 0.0)[0]
        deadline = time.monotonic() + limits.seconds(wait, "wait")
        store = self.opened()
        slots = doorbell.slots_of([self.name])
        sleeper = doorbell.Sleeper(store.directory, slots, store.vfs, store.access)
        try:
            while True:
                jobs, next_due = self._lease(count, timeout, slots, _FALLBACK)
                left = deadline - time.monotonic()
                if jobs or left <= 0:
                    return jobs
                pause = min(left, _FALLBACK)
                if next_due is not None:
                    pause = min(pause, next_due - self._clock.boot())
                sleeper.wait(pause)
        finally:
            sleeper.close()

    def _lease(
        self, count: int, timeout: float, slots: tuple[int, ...], sleep: float
    ) -> tuple[list[Job[T]], float | None]:
        store = self.opened()
        wish = claim.Wish(
            queues=(self.name,),
            count=count,
            seconds=timeout,
            delay=self.retry_delay,
            durable_only=self.fsync,
            sleep_slots=slots,
            sleep_seconds=sleep,
        )
        found = claim.claim(store, wish, timeout=self.lock_timeout)
        jobs: list[Job[T]] = []
        for claimed in found.jobs:
            held = Held(claimed.position, claimed.token)
            text = history.payload(store, claimed.row)
            if text is None:
                self._bury(held, claim.damaged(claimed), settle.UNREADABLE)
                continue
            jobs.append(self._job(claimed.position, claimed.row, text=text, held=held))
        return jobs, found.next_due

    def lease_one(
        self, *, visibility_timeout: float | None = None, wait: float | None = None
    ) -> Job[T] | None:
        """Lease the next due job, or return None."""
        jobs = self.lease(1, visibility_timeout=visibility_timeout, wait=wait)
        return jobs[0] if jobs else None

    def ack(self, job: Job[T]) -> None:
        """Finish a job; repeating it changes nothing.

        Raises ``NotLeasedError`` when somebody else was given the job meanwhile.
        """
        settle.ack(
            self.opened(),
            self._held(job),
            result=None,
            durable=self.fsync,
            timeout=self.lock_timeout,
        )

    def nack(
        self, job: Job[T], *, error: str | None = None, delay: float | None = None
    ) -> Job[T]:
        """End an attempt in failure: again after the backoff or ``delay``, or dead.

        Returns the job as it is then: ``state`` tells which.
        """
        if delay is not None:
            delay = limits.delay(delay, self._clock.wall())
        settled = settle.nack(
            self.opened(),
            self._held(job),
            error=_failure(error),
            delay=delay,
            backoff=self.retry_delay,
            durable=self.fsync,
            timeout=self.lock_timeout,
        )
        return self._again(job, settled.row)

    def fail(self, job: Job[T], *, error: str | None = None) -> Job[T]:
        """Send a job to the dead letters, whatever attempts it has left."""
        return self._again(
            job, self._bury(self._held(job), _failure(error), settle.REJECTED)
        )

    def extend(self, job: Job[T], seconds: float) -> Job[T]:
        """Hold a job for at least ``seconds`` from now; a lease never gets shorter."""
        limits.seconds(seconds, "seconds", above=0)
        row = settle.extend(
            self.opened(), self._held(job), seconds, timeout=self.lock_timeout
        )
        return self._again(job, row, held=job.held)

    def release(self, job: Job[T]) -> Job[T]:
        """Give a job back at once; the attempt does not count."""
        row = settle.release(
            self.opened(),
            self._held(job),
            durable=self.fsync,
            timeout=self.lock_timeout,
        )
        return self._again(job, row)

    @contextmanager
    def processing(self, *, wait: float | None = None) -> Iterator[Job[T]]:
        """Lease one job: acknowledged when the block ends, nacked when it raises.

        Raises ``QueueEmpty`` when there is none within ``wait`` seconds.
        """
        job = self.lease_one(wait=wait)
        if job is None:
            msg = f"The queue {self.name} has no due job."
            raise QueueEmpty(msg)
        try:
            yield job
        except BaseException as error:
            self.nack(job, error=f"{type(error).__name__}: {error}")
            raise
        self.ack(job)

    def _bury(self, held: Held, error: Failure, reason: str) -> Row:
        return settle.bury(
            self.opened(),
            held,
            error=error,
            reason=reason,
            durable=self.fsync,
            timeout=self.lock_timeout,
        )

    def _held(self, job: Job[T]) -> Held:
        held = job.held
        if job.queue != self.name or held is None:
            msg = f"Job {job.id} was not leased from the queue {self.name}."
            raise NotLeasedError(msg)
        return held

    def retry_delay(self, _queue: str, attempt: int) -> float:
        """Return the seconds after which a failed attempt is followed by the next."""
        return self.backoff.delay(attempt)

    # --- looking and maintaining ------------------------------------------------

    def get(self, job_id: str) -> Job[T]:
        """Return the job of that id; raises ``JobNotFoundError``."""
        store = self.opened()

        def look(tables: Tables) -> tuple[int, Row] | None:
            number = tables.queue_number(self.name)
            return None if number is None else tables.find(job_id, number)

        found = store.look(look)
        if found is None:
            msg = f"No job {job_id!r} is in the queue {self.name}."
            raise JobNotFoundError(msg)
        return self._job(*found)

    def stats(self) -> QueueStats:
        """Count the jobs by state; the cost does not grow with their number."""

        def look(tables: Tables) -> tuple[tuple[int, ...], int]:
            number = tables.queue_number(self.name)
            if number is None:
                return (0,) * keys.SLOTS, 0
            return tables.counts(number), tables.expired(self._clock.boot()).get(
                number, 0
            )

        (ready, delayed, leased, done, dead, _), expired = self.opened().look(look)
        # A lease that has run out is nobody's: the job is there for the taking.
        ready, leased = ready + expired, leased - expired
        return QueueStats(
            ready, delayed, leased, done, dead, ready + delayed + leased + done + dead
        )

    def list_jobs(
        self,
        state: JobState | str | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Job[T]]:
        """Return jobs in the order in which they were enqueued, of one state or of all."""
        wanted = None if state is None else _STATES.index(JobState(state))
        if limit is not None:
            limits.whole(limit, "limit", at_least=0)
        limits.whole(offset, "offset", at_least=0)

        def look(tables: Tables) -> list[tuple[int, Row]]:
            number = tables.queue_number(self.name)
            return (
                [] if number is None else tables.listed(number, wanted, limit, offset)
            )

        return [self._job(*found) for found in self.opened().look(look)]

    def dlq(self, *, limit: int | None = None, offset: int = 0) -> list[Job[T]]:
        """Return the dead letters in the order in which they were enqueued."""
        return self.list_jobs(JobState.DEAD, limit=limit, offset=offset)

    def requeue_dead(self, job_id: str | None = None) -> int:
        """Make one dead job, or all of them, ready again; returns how many.

        Attempts start anew. A job that is not dead: ``NotLeasedError``.
        """
        store = self.opened()
        if job_id is None:
            positions = settle.dead_positions(store, self.name)
        else:
            job = self.get(job_id)
            if job.state is not JobState.DEAD:
                msg = f"Job {job_id} is not dead but {job.state.value}."
                raise NotLeasedError(msg)
            positions = [job.position]
        moved = settle.requeue(
            store, positions, by="", durable=self.fsync, timeout=self.lock_timeout
        )
        return len(moved)

    @property
    def recovery(self) -> RecoveryReport:
        """What opening the store found and repaired."""
        return self._store.recovery

    def close(self) -> None:
        """Close the queue; later calls raise ``QueueClosedError``."""
        if not self._closed:
            self._closed = True
            close_store(self._store)

    def __enter__(self) -> Queue[T]:
        """Return the queue; it is closed when the block ends."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the queue."""
        self.close()

    def __repr__(self) -> str:
        """Show where the queue is."""
        return f"Queue({self._store.directory!r}, {self.name!r})"

    def opened(self) -> Store:
        """Return the store; raises ``QueueClosedError`` after ``close``."""
        if self._closed:
            msg = "The queue is closed."
            raise QueueClosedError(msg)
        return self._store

    # --- rows into jobs -----------------------------------------------------------

    def _job(
        self,
        position: int,
        row: Row,
        *,
        text: bytes | None = None,
        held: Held | None = None,
    ) -> Job[T]:
        store = self._store
        if text is None:
            text = history.payload(store, row)
        return Job(
            id=row.id,
            payload=_value(text),
            queue=self.name,
            priority=row.priority,
            state=_STATES[row.state],
            attempts=row.attempts,
            max_attempts=row.max_attempts,
            available_at=row.available_at,
            enqueued_at=row.enqueued_at,
            last_error=_last_error(store, row),
            position=position,
            owner=self,
            held=held,
        )

    def _again(self, job: Job[T], row: Row, *, held: Held | None = None) -> Job[T]:
        return Job(
            id=job.id,
            payload=job.payload,
            queue=job.queue,
            priority=job.priority,
            state=_STATES[row.state],
            attempts=row.attempts,
            max_attempts=row.max_attempts,
            available_at=row.available_at,
            enqueued_at=row.enqueued_at,
            last_error=_last_error(self._store, row),
            position=job.position,
            owner=self,
            held=held,
        )


def _failure(error: str | None) -> Failure:
    text = "" if error is None else str(error)
    text = text.encode("utf-8", "backslashreplace").decode()
    return Failure(message=text[:_MESSAGE_LIMIT])


def _last_error(store: Store, row: Row) -> str | None:
    if not row.error:
        return None
    found = history.failure_at(store, row.error)
    if found is None:
        return None
    failure = found[0]
    if failure.type == claim.LOST.type or not failure.type:
        return failure.message
    return f"{failure.type}: {failure.message}"


def _value(text: bytes | None) -> Any:
    """Return a payload for display; None where its record is damaged."""
    return None if text is None else payload.loads(text)
