"""The half of a queue that adds work."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, TypeVar

from django_nobroker import limits
from django_nobroker.engine import enqueue
from django_nobroker.engine.enqueue import Duplicate
from django_nobroker.engine.errors import QueueFull
from django_nobroker.engine.record import Enqueue
from django_nobroker.engine.store import Store
from django_nobroker.payload import encode

from .job import Job, JobState
from .opening import OpenQueue

T = TypeVar("T")

# A producer that waits for room looks again after these seconds, doubling.
_FIRST_LOOK, _LONGEST_LOOK = 0.01, 0.25


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
        until = _deadline(block=block, timeout=timeout)
        text, value = encode(payload)
        record = self._record(text, self._terms(priority, delay, max_attempts), job_id)
        answer = self._place(store, [record], until)[0]
        return self._job_of(answer, value)

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
        store = self.opened()
        until = _deadline(block=block, timeout=timeout)
        values = list(payloads)
        if job_ids is not None and len(job_ids) != len(values):
            raise ValueError(f"{len(values)} payloads, but {len(job_ids)} job_ids.")
        if not values:
            return []
        terms = self._terms(priority, delay, max_attempts)
        encoded = [encode(value, f"payloads[{i}]") for i, value in enumerate(values)]
        ids = job_ids or repeat(None)
        records = [
            self._record(text, terms, job_id)
            for (text, _), job_id in zip(encoded, ids, strict=False)
        ]
        answers = self._place(store, records, until)
        return [
            self._job_of(answer, value)
            for answer, (_, value) in zip(answers, encoded, strict=True)
        ]

    def _terms(
        self, priority: int, delay: float, max_attempts: int | None
    ) -> tuple[float, int, float | None, int]:
        """Check what the jobs of one call share: now, priority, due time, attempts."""
        now = self._clock.wall()
        if priority != 0 or type(priority) is not int:
            limits.priority(priority)
        due = None
        if delay != 0 or isinstance(delay, bool):
            due = now + limits.delay(delay, now)
        attempts = self.max_attempts
        if max_attempts is not None:
            attempts = limits.whole(max_attempts, "max_attempts", at_least=1)
        return now, priority, due, attempts

    def _record(
        self,
        text: bytes,
        terms: tuple[float, int, float | None, int],
        job_id: str | None,
    ) -> Enqueue:
        now, priority, due, attempts = terms
        return enqueue.new(
            queue=self.name,
            payload=text,
            now=now,
            max_attempts=attempts,
            priority=priority,
            due=due,
            job_id=None if job_id is None else limits.name(job_id, "job_id"),
        )

    def _place(
        self, store: Store, records: list[Enqueue], until: float
    ) -> Sequence[Enqueue | Duplicate]:
        """Enqueue, waiting for room until then (monotonic clock)."""
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
                left = until - time.monotonic()
                if left <= 0:
                    raise
                time.sleep(min(pause, left))
                pause = min(2 * pause, _LONGEST_LOOK)
                self.opened()

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
    if timeout is not None and limits.seconds(timeout, "timeout") < 0:
        raise ValueError(f"timeout must be >= 0 seconds, not {timeout}.")
    if not block:
        return 0.0
    return math.inf if timeout is None else time.monotonic() + timeout
