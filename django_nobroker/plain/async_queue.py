"""The plain face for coroutines: a queue whose verbs never block the event loop."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

from django_nobroker import exception_text
from django_nobroker.engine.doorbell import Sleeper
from django_nobroker.engine.errors import NotLeasedError, QueueEmpty
from django_nobroker.engine.recovery import RecoveryReport

from .async_operating import AsyncOperating
from .consuming import waiting
from .inspecting import QueueStats
from .job import Job, JobState, T
from .producing import Asked, OnConflict
from .stepping import SteppedQueue, all_awaited, awaited, rung


class AsyncQueue(AsyncOperating[T]):
    """A :class:`Queue` for coroutines: the same options, the same verbs, awaited.

    The store is opened, and the options are checked, when ``async with`` begins or
    at the first verb. Jobs are handed to the verbs of the queue, as in
    ``await queue.ack(job)``; the verbs of the job itself raise ``TypeError``. One
    event loop uses it at a time.

    A verb runs in a thread, and a task that is cancelled meanwhile waits until it is
    over: a write is on disk or refused when ``CancelledError`` arrives, and jobs that
    were leased are released, without counting the attempt. Waits, for a job or for
    room, take no thread and end at once.
    """

    # --- adding work ----------------------------------------------------------------

    async def enqueue(  # noqa: PLR0913 - the options of a job, as documented
        self,
        payload: T,
        *,
        priority: int = 0,
        delay: float = 0.0,
        max_attempts: int | None = None,
        job_id: str | None = None,
        on_conflict: OnConflict = "existing",
        block: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - waits for room, as documented
    ) -> Job[T]:
        """Add one job; see :meth:`Queue.enqueue`."""
        jobs = await self._enqueued(
            lambda queue: queue.asked(
                payload,
                priority=priority,
                delay=delay,
                max_attempts=max_attempts,
                job_id=job_id,
                on_conflict=on_conflict,
            ),
            block=block,
            timeout=timeout,
        )
        return jobs[0]

    async def enqueue_many(  # noqa: PLR0913 - the same
        self,
        payloads: Iterable[T],
        *,
        priority: int = 0,
        delay: float = 0.0,
        max_attempts: int | None = None,
        job_ids: Sequence[str | None] | None = None,
        on_conflict: OnConflict = "existing",
        block: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - waits for room, as documented
    ) -> list[Job[T]]:
        """Add all of the jobs or none; see :meth:`Queue.enqueue_many`."""
        values = list(payloads)  # here, as a generator may belong to this thread
        return await self._enqueued(
            lambda queue: queue.asked_many(
                values,
                priority=priority,
                delay=delay,
                max_attempts=max_attempts,
                job_ids=job_ids,
                on_conflict=on_conflict,
            ),
            block=block,
            timeout=timeout,
        )

    async def _enqueued(
        self,
        ask: Callable[[SteppedQueue[T]], Asked[T]],
        *,
        block: bool,
        timeout: float | None,  # noqa: ASYNC109 - waits for room, as documented
    ) -> list[Job[T]]:
        """Write the records once, and place them as soon as there is room."""
        asked: Asked[T] | None = None

        def act(queue: SteppedQueue[T]) -> list[Job[T]]:
            nonlocal asked
            asked = asked or ask(queue)
            return all_awaited(queue.placed(asked, 0.0))

        return await self._when_there_is_room(act, block=block, timeout=timeout)

    # --- taking work, and ending it -------------------------------------------------

    async def lease(
        self,
        count: int = 1,
        *,
        visibility_timeout: float | None = None,
        wait: float | None = None,
    ) -> list[Job[T]]:
        """Lease up to ``count`` due jobs; see :meth:`Queue.lease`.

        Cancelling it never loses a job: what it leased is released.
        """
        seconds = waiting(wait)
        deadline = time.monotonic() + seconds
        jobs = await self._run(
            lambda queue: all_awaited(
                queue.lease(count, visibility_timeout=visibility_timeout)
            ),
            undo=self._give_back,
        )
        if jobs or seconds <= 0:
            return jobs

        def look(queue: SteppedQueue[T]) -> tuple[list[Job[T]], float]:
            found, pause = queue.look(count, visibility_timeout, sleeper)
            return all_awaited(found), pause

        def give_back(looked: tuple[list[Job[T]], float]) -> None:
            self._give_back(looked[0])

        threads = self._threads
        with threads.use():
            sleeper = await self._run(lambda queue: queue.sleeper(), undo=Sleeper.close)
            self._sleepers.add(sleeper)
            try:
                while not jobs:
                    jobs, pause = await self._run(look, undo=give_back)
                    left = deadline - time.monotonic()
                    if jobs or left <= 0:
                        break
                    await rung(sleeper, min(pause, left))
            finally:
                self._sleepers.discard(sleeper)
                # This is where a cancellation may still come between a job and its taker.
                await threads.run(
                    sleeper.close, undo=lambda _none: self._give_back(jobs)
                )
        return jobs

    async def lease_one(
        self, *, visibility_timeout: float | None = None, wait: float | None = None
    ) -> Job[T] | None:
        """Lease the next due job, or return None."""
        jobs = await self.lease(1, visibility_timeout=visibility_timeout, wait=wait)
        return jobs[0] if jobs else None

    async def ack(self, job: Job[T]) -> None:
        """Finish a job; see :meth:`Queue.ack`."""
        await self._run(lambda queue: queue.ack(job))

    async def nack(
        self, job: Job[T], *, error: str | None = None, delay: float | None = None
    ) -> Job[T]:
        """End an attempt in failure; see :meth:`Queue.nack`."""
        return await self._run(
            lambda queue: awaited(queue.nack(job, error=error, delay=delay))
        )

    async def fail(self, job: Job[T], *, error: str | None = None) -> Job[T]:
        """Send a job to the dead letters; see :meth:`Queue.fail`."""
        return await self._run(lambda queue: awaited(queue.fail(job, error=error)))

    async def extend(self, job: Job[T], seconds: float) -> Job[T]:
        """Hold a job for longer; see :meth:`Queue.extend`."""
        return await self._run(lambda queue: awaited(queue.extend(job, seconds)))

    async def release(self, job: Job[T]) -> Job[T]:
        """Give a job back at once; see :meth:`Queue.release`."""
        return await self._run(lambda queue: awaited(queue.release(job)))

    @asynccontextmanager
    async def processing(self, *, wait: float | None = None) -> AsyncIterator[Job[T]]:
        """Lease one job: acknowledged when the block ends, nacked when it raises.

        A block that is cancelled has raised. ``QueueEmpty`` when there is no job
        within ``wait`` seconds.
        """
        job = await self.lease_one(wait=wait)
        if job is None:
            msg = f"The queue {self.name} has no due job."
            raise QueueEmpty(msg)
        try:
            yield job
        except BaseException as error:
            text = f"{type(error).__name__}: {exception_text.message(error)}"
            # If the lease is lost, there is nothing to give back any more.
            with suppress(NotLeasedError):
                await self.nack(job, error=text)
            raise
        await self.ack(job)

    # --- looking, and bringing dead letters back ------------------------------------

    async def get(self, job_id: str) -> Job[T]:
        """Return the job of that id; raises ``JobNotFoundError``."""
        return await self._run(lambda queue: awaited(queue.get(job_id)))

    async def stats(self) -> QueueStats:
        """Count the jobs by state; the cost does not grow with their number."""
        return await self._run(lambda queue: queue.stats())

    async def list_jobs(
        self,
        state: JobState | str | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        after: Job[T] | None = None,
    ) -> list[Job[T]]:
        """Return jobs in the order of their enqueues; see :meth:`Queue.list_jobs`."""
        return await self._run(
            lambda queue: all_awaited(
                queue.list_jobs(state, limit=limit, offset=offset, after=after)
            )
        )

    async def dlq(
        self,
        *,
        limit: int | None = None,
        offset: int = 0,
        after: Job[T] | None = None,
    ) -> list[Job[T]]:
        """Return the dead letters in the order of their enqueues; see :meth:`Queue.dlq`."""
        return await self.list_jobs(
            JobState.DEAD, limit=limit, offset=offset, after=after
        )

    async def requeue_dead(
        self,
        job_id: str | None = None,
        *,
        matching: Callable[[Job[T]], bool] | None = None,
    ) -> int:
        """Make dead jobs ready again; see :meth:`Queue.requeue_dead`.

        ``matching`` is called in another thread.
        """
        return await self._run(
            lambda queue: queue.requeue_dead(job_id, matching=matching)
        )

    async def purge(
        self, state: JobState | str | None = None, *, older_than: float | None = None
    ) -> int:
        """Take jobs out of the queue for good; see :meth:`Queue.purge`."""
        return await self._run(lambda queue: queue.purge(state, older_than=older_than))

    async def recovery(self) -> RecoveryReport:
        """Return what opening the store found and repaired."""
        return await self._run(lambda queue: queue.recovery)
