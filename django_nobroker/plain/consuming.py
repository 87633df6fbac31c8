"""The half of a queue that takes work and ends it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django_nobroker import exception_text, limits
from django_nobroker.engine import claim, doorbell, history, settle
from django_nobroker.engine.claim import Claimed
from django_nobroker.engine.errors import (
    LockTimeoutError,
    NotLeasedError,
    QueueEmpty,
    StorageError,
)
from django_nobroker.engine.record import Failure
from django_nobroker.engine.settle import Held
from django_nobroker.engine.states import Row

from .job import Job, T
from .opening import OpenQueue

logger = logging.getLogger("django_nobroker.queue")

# A lease that waits looks again by itself, should a wake-up be missed.
_FALLBACK = 1.0


class Consuming(OpenQueue[T]):
    """Leasing jobs, and every way to end or prolong a lease."""

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
        patience = waiting(wait)
        if not patience:
            return self._lease(count, timeout, (), 0.0)[0]
        deadline = time.monotonic() + patience
        store = self.writable()
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
        store = self.writable()
        jobs: list[Job[T]] = []
        while True:
            wish = claim.Wish(
                queues=(self.name,),
                count=count - len(jobs),
                seconds=timeout,
                delay=self.retry_delay,
                durable_only=self.fsync,
                sleep_slots=slots,
                sleep_seconds=sleep,
            )
            found = claim.claim(store, wish, timeout=self.lock_timeout)
            taken = [self._taken(claimed) for claimed in found.jobs]
            jobs += [job for job in taken if job is not None]
            if None not in taken:
                return jobs, found.next_due

    def _taken(self, claimed: Claimed) -> Job[T] | None:
        """Return a leased job; None if it has no payload: then it is a dead letter."""
        text = history.payload(self._store, claimed.row)
        if text is None:
            failure, reason = claim.damaged(claimed), settle.UNREADABLE
        else:
            job = self.as_leased(claimed, text)
            if isinstance(job, Job):
                return job
            failure = Failure(type=type(job).__name__, message=job.error)
            reason = settle.UNDECODABLE
        try:
            self._bury(Held(claimed.position, claimed.token), failure, reason)
        except NotLeasedError:
            pass  # it took so long that somebody else has it now
        except (StorageError, LockTimeoutError) as error:
            # Those that were leased with it are not to be lost for that. Its lease
            # runs out, and whoever gets it then tries again.
            logger.warning("Job %s could not be buried: %s", claimed.row.id, error)
        return None

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
            self.writable(),
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
            self.writable(),
            self._held(job),
            error=_failure(error),
            delay=delay,
            backoff=self.retry_delay,
            durable=self.fsync,
            timeout=self.lock_timeout,
        )
        return self.as_it_is(job, settled.row)

    def fail(self, job: Job[T], *, error: str | None = None) -> Job[T]:
        """Send a job to the dead letters, whatever attempts it has left."""
        return self.as_it_is(
            job, self._bury(self._held(job), _failure(error), settle.REJECTED)
        )

    def extend(self, job: Job[T], seconds: float) -> Job[T]:
        """Hold a job for at least ``seconds`` from now; a lease never gets shorter."""
        limits.seconds(seconds, "seconds", above=0)
        row = settle.extend(
            self.writable(), self._held(job), seconds, timeout=self.lock_timeout
        )
        return self.as_it_is(job, row, held=job.held)

    def release(self, job: Job[T]) -> Job[T]:
        """Give a job back at once; the attempt does not count."""
        row = settle.release(
            self.writable(),
            self._held(job),
            durable=self.fsync,
            timeout=self.lock_timeout,
        )
        return self.as_it_is(job, row)

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
            text = f"{type(error).__name__}: {exception_text.message(error)}"
            # If the lease is lost, there is nothing to give back any more.
            with suppress(NotLeasedError):
                self.nack(job, error=text)
            raise
        self.ack(job)

    def _bury(self, held: Held, error: Failure, reason: str) -> Row:
        return settle.bury(
            self.writable(),
            held,
            error=error,
            reason=reason,
            durable=self.fsync,
            timeout=self.lock_timeout,
        )

    def _held(self, job: Job[T]) -> Held:
        held = job.held
        # A token tells the leases of one store apart, not those of several.
        is_ours = (job.queue, job.held_in) == (self.name, self._store.directory)
        if held is None or not is_ours:
            msg = f"Job {job.id} was not leased from the queue {self.name}."
            raise NotLeasedError(msg)
        return held


def waiting(wait: float | None) -> float:
    """Return for how many seconds a lease waits; None means that it does not."""
    return 0.0 if wait is None else limits.seconds(wait, "wait", at_least=0)


def _failure(error: str | None) -> Failure:
    text = "" if error is None else str(error)
    return Failure(
        message=exception_text.encodable(text[: exception_text.MESSAGE_LIMIT])
    )
