"""Threads for coroutines: a call that was begun is carried through, come what may."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from django_nobroker.engine.errors import QueueClosedError

R = TypeVar("R")

# Threads that wait for the same sync are committed together, so a few more than
# there are processors pay off. Unused ones are never started.
_THREADS = 16


class Threads:
    """A pool of threads of its own, for one event loop at a time.

    The loop's default pool would do, were it not everybody's: an acknowledgement
    stuck behind others' blocking calls would lose its lease.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = ThreadPoolExecutor(
            _THREADS, thread_name_prefix="nobroker-async"
        )
        self._finished = False
        self._users = 0
        self._leaving: list[asyncio.Future[None]] = []

    @contextmanager
    def use(self) -> Iterator[None]:
        """Keep the pool while the block runs; ``QueueClosedError`` after ``finish``."""
        if self._finished:
            msg = "The queue is closed."
            raise QueueClosedError(msg)
        self._users += 1
        try:
            yield
        finally:
            self._leave()

    async def run(
        self, call: Callable[[], R], *, undo: Callable[[R], object] | None = None
    ) -> R:
        """Return what ``call`` returns in a thread; the caller has the pool in use.

        A cancelled caller waits until the call is over, however often it is
        cancelled. If the call succeeded, ``undo`` is given its answer, in a thread
        again, and then ``CancelledError`` goes on; its cause is what failed, if
        anything did.
        """
        pool = self._pool
        assert pool is not None  # it is in use
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(pool, call)
        cancelled = await _carried_through(future)
        if cancelled is None:
            return future.result()
        failure = future.exception()
        if failure is None and undo is not None:
            undone = loop.run_in_executor(pool, undo, future.result())
            await _carried_through(undone)
            failure = undone.exception()
        raise cancelled from failure

    async def finish(self, last: Callable[[], object]) -> None:
        """Let nobody in any more, wait for those inside, then make the ``last`` call.

        Being cancelled changes nothing about that; repeating it does nothing.
        """
        self._finished = True
        loop = asyncio.get_running_loop()
        cancelled = None
        while self._users:
            empty: asyncio.Future[None] = loop.create_future()
            self._leaving.append(empty)
            cancelled = await _carried_through(empty) or cancelled
        pool, self._pool = self._pool, None
        if pool is not None:
            self._users += 1  # whoever else finishes waits for this one
            try:
                future = loop.run_in_executor(pool, last)
                cancelled = await _carried_through(future) or cancelled
            finally:
                pool.shutdown(wait=False)
                self._leave()
            future.result()
        if cancelled is not None:
            raise cancelled

    def _leave(self) -> None:
        self._users -= 1
        if not self._users:
            waiting, self._leaving = self._leaving, []
            for empty in waiting:
                empty.set_result(None)


async def _carried_through(
    future: asyncio.Future[R],
) -> asyncio.CancelledError | None:
    """Return when a future is done, with the last cancellation on the way there."""
    cancelled = None
    while not future.done():
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled
