"""A queue that looks once where another would wait, for an event loop to drive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NoReturn

from msgspec.structs import replace

from django_nobroker.engine import doorbell, settle
from django_nobroker.engine.doorbell import Sleeper
from django_nobroker.engine.errors import NotLeasedError

from .job import Job, T
from .queue import Queue

# A lease that waits looks again by itself, should a wake-up be missed.
_FALLBACK = 1.0


class SteppedQueue(Queue[T]):
    """A queue with its waits taken apart; every method is called in a thread."""

    def sleeper(self) -> Sleeper:
        """Return what will be rung when a job comes; the caller closes it."""
        store = self.opened()
        return Sleeper(
            store.directory, doorbell.slots_of([self.name]), store.vfs, store.access
        )

    def look(
        self, count: int, visibility_timeout: float | None, sleeper: Sleeper
    ) -> tuple[list[Job[T]], float]:
        """Lease what is due, or announce the sleeper; and for how many seconds it may.

        The arguments have been checked.
        """
        # A ring that is not heard before looking would end the next sleep at once.
        sleeper.wait(0.0)
        seconds = (
            self.visibility_timeout
            if visibility_timeout is None
            else visibility_timeout
        )
        jobs, next_due = self._lease(count, seconds, sleeper.slots, _FALLBACK)
        if next_due is None:
            return jobs, _FALLBACK
        return jobs, min(_FALLBACK, max(0.0, next_due - self._clock.boot()))

    def give_back(self, jobs: Iterable[Job[T]]) -> None:
        """Release leased jobs whose taker is gone; their attempts do not count."""
        for job in jobs:
            with suppress(NotLeasedError):
                # Not synced, as the lease was not: a power cut that takes the release
                # may leave a lease, which runs out.
                settle.release(
                    self.writable(),
                    self._held(job),
                    durable=False,
                    timeout=self.lock_timeout,
                )


async def rung(sleeper: Sleeper, seconds: float) -> None:
    """Return when the sleeper is rung or the time is over; no thread waits for it."""
    loop = asyncio.get_running_loop()
    heard: asyncio.Future[None] = loop.create_future()

    def hear() -> None:
        if not heard.done():
            heard.set_result(None)

    readers = sleeper.readers
    for reader in readers:
        loop.add_reader(reader, hear)
    try:
        await asyncio.wait((heard,), timeout=seconds)
    finally:
        for reader in readers:
            loop.remove_reader(reader)


def _refusing(verb: str) -> Callable[..., NoReturn]:
    def refuse(*_arguments: object, **_options: object) -> NoReturn:
        msg = f"This job is of an AsyncQueue; write `await queue.{verb}(job)` instead."
        raise TypeError(msg)

    return refuse


class _Awaited:
    """Stands for the queue in the jobs of an ``AsyncQueue``.

    The verbs of a job are plain calls: they would block the loop, or return a
    coroutine that nobody awaits.
    """

    ack = staticmethod(_refusing("ack"))
    nack = staticmethod(_refusing("nack"))
    fail = staticmethod(_refusing("fail"))
    extend = staticmethod(_refusing("extend"))
    release = staticmethod(_refusing("release"))


_AWAITED = _Awaited()


def awaited(job: Job[T]) -> Job[T]:
    """Return a job whose own verbs say that the queue's are to be awaited."""
    return replace(job, owner=_AWAITED)


def all_awaited(jobs: Iterable[Job[T]]) -> list[Job[T]]:
    """Return such jobs."""
    return [awaited(job) for job in jobs]
