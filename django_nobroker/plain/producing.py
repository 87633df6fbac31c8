"""The half of a queue that adds work."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from msgspec import Raw

from django_nobroker import limits
from django_nobroker.engine import capacity, enqueue
from django_nobroker.engine.enqueue import Duplicate, random_part, random_parts
from django_nobroker.engine.record import Enqueue
from django_nobroker.payload import encode, encode_all

from .job import Job, JobState
from .opening import OpenQueue

T = TypeVar("T")


#: What the jobs of one call share: now, priority, due time, attempts at most.
_Terms = tuple[float, int, float | None, int]


class Producing(OpenQueue[T]):
    """Enqueueing one job or many, waiting for room if the queue is full."""

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
        store = self.opened()
        text, value = encode(payload)
        terms = self._terms(priority, delay, max_attempts)
        if job_id is None and timeout is None and self.max_pending is None:
            # Nothing to look up and nothing to wait for: the way of most jobs.
            record = self._record(text, terms, None)
            append = store.append_durably if self.fsync else store.append
            append(record, self.lock_timeout)
            return self._job_of(record, value)
        if job_id is not None:
            limits.name(job_id, "job_id")
        until = _deadline(block=block, timeout=timeout)
        record = self._record(text, terms, job_id)
        return self._job_of(self._place([record], until)[0], value)

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
        self.opened()
        until = _deadline(block=block, timeout=timeout)
        values = list(payloads)
        if job_ids is not None and len(job_ids) != len(values):
            raise ValueError(f"{len(values)} payloads, but {len(job_ids)} job_ids.")
        for job_id in job_ids or ():
            if job_id is not None:
                limits.name(job_id, "job_id")
        if not values:
            return []
        terms = self._terms(priority, delay, max_attempts)
        texts, back = encode_all(values)
        if job_ids is None:
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
        else:
            records = [
                self._record(text, terms, job_id)
                for text, job_id in zip(texts, job_ids, strict=True)
            ]
        answers = self._place(records, until)
        if job_ids is not None:
            # An id that came before in this batch is answered with that job.
            known = dict(zip(map(id, records), back, strict=True))
            back = [known.get(id(answer)) for answer in answers]
        job_of = self._job_of
        return [job_of(*one) for one in zip(answers, back, strict=True)]

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
        self, records: list[Enqueue], until: float
    ) -> Sequence[Enqueue | Duplicate]:
        """Enqueue, waiting for room until then (monotonic clock)."""
        most = None if self.max_pending is None else {self.name: self.max_pending}
        return capacity.waiting_for_room(
            lambda: enqueue.place(
                self.opened(),
                records,
                durable=self.fsync,
                timeout=self.lock_timeout,
                most=most,
                blocking=self.job_id_ttl,
            ),
            self._clock,
            until=until,
        )

    def _job_of(self, answer: Enqueue | Duplicate, value: Any) -> Job[T]:
        if isinstance(answer, Duplicate):
            return self.as_job(answer.position, answer.row)
        return Job(
            id=answer.id,
            payload=value,
            queue=answer.queue,
            priority=answer.priority,
            state=JobState.READY,
            attempts=0,
            max_attempts=answer.max,
            available_at=answer.t if answer.due is None else answer.due,
            enqueued_at=answer.t,
            position=answer.at,
            owner=self,
        )


def _deadline(*, block: bool, timeout: float | None) -> float:
    """Return until when to wait for room, on the monotonic clock."""
    if timeout is None:
        return math.inf if block else 0.0
    if limits.seconds(timeout, "timeout") < 0:
        raise ValueError(f"timeout must be >= 0 seconds, not {timeout}.")
    return time.monotonic() + timeout if block else 0.0
