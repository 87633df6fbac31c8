"""Opening a queue for coroutines, and closing it; its calls go to threads."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from django_nobroker.engine.capacity import FIRST_LOOK, LONGEST_LOOK, NeverFits
from django_nobroker.engine.doorbell import Sleeper
from django_nobroker.engine.errors import QueueFull
from django_nobroker.retry import BackoffPolicy
from django_nobroker.serializers import Serializer

from .job import Job, T
from .producing import deadline
from .stepping import SteppedQueue
from .threads import Threads

R = TypeVar("R")


class AsyncOpening(Generic[T]):
    """What all verbs of an ``AsyncQueue`` share: its options, threads and lifetime."""

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
        result_ttl: float = 0.0,
        job_id_ttl: float = 86400.0,
        file_mode: int = 0o660,
        group: str | int | None = None,
        index_directory: str | os.PathLike[str] | None = None,
        serializer: Serializer[T] | None = None,
        read_only: bool = False,
    ) -> None:
        """Note what to open; nothing happens on the disk yet."""
        self.name = name
        # Relative to where it was made, as a queue is, not to where it is first used.
        self._path = Path(path).absolute()
        self._make = partial(
            SteppedQueue[T],
            self._path,
            name,
            fsync=fsync,
            visibility_timeout=visibility_timeout,
            max_attempts=max_attempts,
            backoff=backoff,
            lock_timeout=lock_timeout,
            max_pending=max_pending,
            result_ttl=result_ttl,
            job_id_ttl=job_id_ttl,
            file_mode=file_mode,
            group=group,
            index_directory=index_directory,
            serializer=serializer,
            read_only=read_only,
        )
        self._queue: SteppedQueue[T] | None = None
        self._mutex = threading.Lock()  # held by the thread that opens the queue
        self._threads = Threads()
        self._sleepers: set[Sleeper] = set()

    async def close(self) -> None:
        """Close the queue once the verbs under way are over; waits end at once.

        Later calls raise ``QueueClosedError``, and so do leases that still wait.
        """
        for sleeper in self._sleepers:
            sleeper.wake()
        await self._threads.finish(self._shut)

    async def __aenter__(self) -> Self:
        """Open the queue; it is closed when the block ends."""
        await self._run(lambda _queue: None)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the queue."""
        await self.close()

    def __repr__(self) -> str:
        """Show where the queue is."""
        return f"AsyncQueue({str(self._path)!r}, {self.name!r})"

    # --- in threads -----------------------------------------------------------------

    async def _run(
        self,
        act: Callable[[SteppedQueue[T]], R],
        *,
        undo: Callable[[R], object] | None = None,
    ) -> R:
        """Return what ``act`` returns in a thread; ``undo`` as in :class:`Threads`."""
        with self._threads.use():
            return await self._threads.run(lambda: act(self._opened()), undo=undo)

    async def _when_there_is_room(
        self,
        act: Callable[[SteppedQueue[T]], R],
        *,
        block: bool,
        timeout: float | None,  # noqa: ASYNC109 - it says how long to look again
    ) -> R:
        """Run what enqueues without waiting, again and again while the queue is full."""
        until = deadline(block=block, timeout=timeout)
        pause = FIRST_LOOK
        while True:
            try:
                return await self._run(act)
            except NeverFits:
                raise
            except QueueFull:
                left = until - time.monotonic()
                if left <= 0:
                    raise
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, LONGEST_LOOK)

    def _opened(self) -> SteppedQueue[T]:
        with self._mutex:
            if self._queue is None:
                self._queue = self._make()
            return self._queue

    def _give_back(self, jobs: list[Job[T]]) -> None:
        self._opened().give_back(jobs)

    def _shut(self) -> None:
        with self._mutex:
            if self._queue is not None:
                self._queue.close()
