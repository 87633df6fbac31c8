"""The half of a queue that adds work."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import Generic, Literal, NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from django_nobroker import limits
from django_nobroker.engine import capacity, enqueue, states
from django_nobroker.engine.enqueue import Answer, random_part, random_parts
from django_nobroker.engine.record import Enqueue
from django_nobroker.engine.store import Store

from .job import Job, JobState, T
from .opening import OpenQueue

#: What becomes of a job_id that is there already, with another payload.
OnConflict = Literal["existing", "error"]
#: What the jobs of one call share: now, priority, due time, attempts at most.
_Terms = tuple[float, int, float | None, int]


class Asked(NamedTuple, Generic[T]):
    """What one call wants to enqueue, checked and written as records."""

    records: list[Enqueue]
    values: list[T]  # as they come back
    named: bool  # whether ids were given, which may be there already
    alike: bool  # whether such an id with another payload is an error


class Producing(OpenQueue[T]):
    """Enqueueing one job or many, waiting for room if the queue is full."""

    def enqueue(  # noqa: PLR0913 - the options of a job, as documented
        self,
        payload: T,
        *,
        priority: int = 0,
        delay: float = 0.0,
        max_attempts: int | None = None,
        job_id: str | None = None,
        on_conflict: OnConflict = "existing",
        block: bool = True,
        timeout: float | None = None,
    ) -> Job[T]:
        """Add one job; durable when it returns.

        ``priority``: higher first. ``delay``: seconds until it is due. When the queue
        is full, waits up to ``timeout`` seconds (None = for ever) for room, or raises
        ``QueueFull`` at once with ``block=False``.

        ``job_id``: a second job of that id is not added, the first is returned, with
        ``created`` false, and with ``conflict`` true if its payload is another. With
        ``on_conflict="error"`` that raises ``DuplicateJobError`` instead; the same
        payload again is no conflict. Of a forgotten job the payload is that given
        now if it is the same, else an ``Undecodable``.

        Raises ``SerializationError``, ``QueueFull``, ``StorageError``.
        """
        if job_id is None and timeout is None and self.max_pending is None:
            # The way of most jobs, and measured in microseconds: nothing is gathered.
            store = self.writable()
            _is_refused(on_conflict)
            terms = self._terms(priority, delay, max_attempts)
            text, value = self._coding.encode(payload)
            return self._appended(store, self._record(text, terms, None), value)
        until = deadline(block=block, timeout=timeout)
        asked = self.asked(
            payload,
            priority=priority,
            delay=delay,
            max_attempts=max_attempts,
            job_id=job_id,
            on_conflict=on_conflict,
        )
        return self.placed(asked, until)[0]

    def enqueue_many(  # noqa: PLR0913 - the same
        self,
        payloads: Iterable[T],
        *,
        priority: int = 0,
        delay: float = 0.0,
        max_attempts: int | None = None,
        job_ids: Sequence[str | None] | None = None,
        on_conflict: OnConflict = "existing",
        block: bool = True,
        timeout: float | None = None,
    ) -> list[Job[T]]:
        """Add all of the jobs or none, with one write and one sync.

        The options hold for every job; ``job_ids`` names them one by one. An id that
        is repeated within the batch is treated as one that exists.
        """
        until = deadline(block=block, timeout=timeout)
        asked = self.asked_many(
            payloads,
            priority=priority,
            delay=delay,
            max_attempts=max_attempts,
            job_ids=job_ids,
            on_conflict=on_conflict,
        )
        return self.placed(asked, until)

    def asked(
        self,
        payload: T,
        *,
        priority: int,
        delay: float,
        max_attempts: int | None,
        job_id: str | None,
        on_conflict: OnConflict,
    ) -> Asked[T]:
        """Check what is to be enqueued and write it as a record, once for all tries."""
        self.writable()
        alike = _is_refused(on_conflict)
        if job_id is not None:
            limits.name(job_id, "job_id")
        terms = self._terms(priority, delay, max_attempts)
        text, value = self._coding.encode(payload)
        record = self._record(text, terms, job_id)
        return Asked([record], [value], job_id is not None, alike)

    def asked_many(
        self,
        payloads: Iterable[T],
        *,
        priority: int,
        delay: float,
        max_attempts: int | None,
        job_ids: Sequence[str | None] | None,
        on_conflict: OnConflict,
    ) -> Asked[T]:
        """Do the same for many."""
        self.writable()
        alike = _is_refused(on_conflict)
        values = list(payloads)
        if job_ids is not None and len(job_ids) != len(values):
            raise ValueError(f"{len(values)} payloads, but {len(job_ids)} job_ids.")
        for job_id in job_ids or ():
            if job_id is not None:
                limits.name(job_id, "job_id")
        terms = self._terms(priority, delay, max_attempts)
        texts, back = self._coding.encode_all(values)
        if job_ids is not None:
            records = [
                self._record(text, terms, job_id)
                for text, job_id in zip(texts, job_ids, strict=True)
            ]
            return Asked(records, back, True, alike)
        name = self.name
        now, priority, due, attempts = terms
        # Spelt out, because a batch is measured in microseconds a job.
        records = [
            Enqueue(
                id=part,
                queue=name,
                t=now,
                priority=priority,
                due=due,
                max=attempts,
                payload=Raw(text),
            )
            for text, part in zip(texts, random_parts(len(texts)), strict=True)
        ]
        return Asked(records, back, False, alike)

    def placed(self, asked: Asked[T], until: float) -> list[Job[T]]:
        """Enqueue what was asked for, waiting for room until then (monotonic clock)."""
        store = self.writable()
        records, values = asked.records, asked.values
        if not records:
            return []
        if not asked.named and self.max_pending is None and len(records) == 1:
            return [self._appended(store, records[0], values[0])]
        answers = self._place(records, until, asked.alike)
        if asked.named:
            return self._answered(answers, records, values)
        return list(map(self._new, records, values))

    def _appended(self, store: Store, record: Enqueue, value: T) -> Job[T]:
        """Enqueue a job with nothing to look up and nothing to wait for."""
        append = store.append_durably if self.fsync else store.append
        append(record, self.lock_timeout)
        return self._new(record, value)

    def _terms(self, priority: int, delay: float, max_attempts: int | None) -> _Terms:
        """Check what the jobs of one call share."""
        now = self._clock.wall()
        if priority != 0 or type(priority) is not int:
            limits.priority(priority)
        due = None
        if delay != 0 or isinstance(delay, bool):
            wait = limits.delay(delay, now)
            due = now + wait if wait else None
        attempts = self.max_attempts
        if max_attempts is not None:
            attempts = limits.whole(max_attempts, "max_attempts", at_least=1)
        return now, priority, due, attempts

    def _record(self, text: bytes, terms: _Terms, job_id: str | None) -> Enqueue:
        now, priority, due, attempts = terms
        return Enqueue(
            id=random_part() if job_id is None else job_id,
            given="" if job_id is None else "queue",
            queue=self.name,
            t=now,
            priority=priority,
            due=due,
            max=attempts,
            payload=Raw(text),
        )

    def _place(
        self,
        records: list[Enqueue],
        until: float,
        alike: bool,  # noqa: FBT001 - one more of what is asked
    ) -> Sequence[Answer]:
        """Enqueue, waiting for room until then (monotonic clock)."""
        most = None if self.max_pending is None else {self.name: self.max_pending}
        return capacity.waiting_for_room(
            lambda: enqueue.place(
                self.writable(),
                records,
                durable=self.fsync,
                timeout=self.lock_timeout,
                most=most,
                blocking=self.job_id_ttl,
                alike=alike,
            ),
            self._clock,
            until=until,
        )

    def _answered(
        self, answers: Sequence[Answer], records: Sequence[Enqueue], values: Sequence[T]
    ) -> list[Job[T]]:
        """Return the jobs that answer an enqueue, those that were there before marked."""
        value_of = dict(zip(map(id, records), values, strict=True))
        jobs: list[Job[T]] = []
        for answer, record in zip(answers, records, strict=True):
            if answer is record:
                jobs.append(self._new(record, value_of[id(record)]))
                continue
            conflict = enqueue.differs(self._store, record, answer)
            if isinstance(answer, Enqueue):
                job = self._new(answer, value_of[id(answer)])
            elif answer.row.state == states.FORGOTTEN and not conflict:
                job = self._job(answer.position, answer.row, value_of[id(record)])
            else:
                job = self.as_job(answer.position, answer.row)
            jobs.append(replace(job, created=False, conflict=conflict))
        return jobs

    def _new(self, record: Enqueue, value: T) -> Job[T]:
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
            created=True,
            position=record.at,
            owner=self,
        )


def _is_refused(on_conflict: object) -> bool:
    """Tell whether a repeated id with another payload is an error."""
    if not isinstance(on_conflict, str):
        raise TypeError(
            f"on_conflict must be a string, not {type(on_conflict).__name__}."
        )
    if on_conflict not in ("existing", "error"):
        raise ValueError(
            f'on_conflict must be "existing" or "error", not {on_conflict!r:.40}.'
        )
    return on_conflict == "error"


def deadline(*, block: bool, timeout: float | None) -> float:
    """Return until when to wait for room, on the monotonic clock."""
    if timeout is None:
        return math.inf if block else 0.0
    if limits.seconds(timeout, "timeout") < 0:
        raise ValueError(f"timeout must be >= 0 seconds, not {timeout}.")
    return time.monotonic() + timeout if block else 0.0
