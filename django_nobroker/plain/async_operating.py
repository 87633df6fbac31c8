"""Looking after the store of a queue, for coroutines."""

from __future__ import annotations

from typing import TypeVar

from django_nobroker.engine.diagnostics import Diagnostics
from django_nobroker.engine.roster import WorkerEntry
from django_nobroker.engine.setaside import SetAside

from .async_opening import AsyncOpening

T = TypeVar("T")


class AsyncOperating(AsyncOpening[T]):
    """What an operator asks of a queue and its store, awaited."""

    async def diagnostics(self) -> Diagnostics:
        """Return figures of the queue and its store; see :meth:`Queue.diagnostics`."""
        return await self._run(lambda queue: queue.diagnostics())

    async def workers(self) -> tuple[WorkerEntry, ...]:
        """Return the workers on this store that are alive; see :meth:`Queue.workers`."""
        return await self._run(lambda queue: queue.workers())

    async def set_aside(self) -> tuple[SetAside, ...]:
        """Return what repairs took out of the log; see :meth:`Queue.set_aside`."""
        return await self._run(lambda queue: queue.set_aside())

    async def read_set_aside(self, name: str) -> bytes:
        """Return the bytes of one entry of ``set_aside``, by its name."""
        return await self._run(lambda queue: queue.read_set_aside(name))
