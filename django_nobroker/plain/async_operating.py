"""Looking after the store of a queue, for coroutines."""

from __future__ import annotations

import os
from collections.abc import Callable

from django_nobroker.engine.backup import BackupReport
from django_nobroker.engine.compaction import CompactionResult
from django_nobroker.engine.diagnostics import Diagnostics
from django_nobroker.engine.integrity import FULL, IntegrityReport
from django_nobroker.engine.replica import Progress
from django_nobroker.engine.roster import WorkerEntry
from django_nobroker.engine.setaside import SetAside
from django_nobroker.engine.verification import VerificationReport
from django_nobroker.problems import Health

from .async_opening import AsyncOpening
from .job import T


class AsyncOperating(AsyncOpening[T]):
    """What an operator asks of a queue and its store, awaited."""

    async def diagnostics(self) -> Diagnostics:
        """Return figures of the queue and its store; see :meth:`Queue.diagnostics`."""
        return await self._run(lambda queue: queue.diagnostics())

    async def health(self) -> Health:
        """Return what is wrong with the store; see :meth:`Queue.health`."""
        return await self._run(lambda queue: queue.health())

    async def check_integrity(
        self,
        mode: str = FULL,
        max_errors: int = 100,
        *,
        progress: Progress | None = None,
    ) -> IntegrityReport:
        """Check the log of the store; see :meth:`Queue.check_integrity`.

        ``progress`` is called in another thread.
        """
        return await self._run(
            lambda queue: queue.check_integrity(mode, max_errors, progress=progress)
        )

    async def verify(
        self, max_errors: int = 100, *, progress: Progress | None = None
    ) -> VerificationReport:
        """Check the log and the index; see :meth:`Queue.verify`."""
        return await self._run(
            lambda queue: queue.verify(max_errors, progress=progress)
        )

    async def rebuild_index(self, *, progress: Progress | None = None) -> int:
        """Build the index anew from the log; see :meth:`Queue.rebuild_index`."""
        return await self._run(lambda queue: queue.rebuild_index(progress=progress))

    async def backup(
        self, directory: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> BackupReport:
        """Copy the store to a new directory; see :meth:`Queue.backup`."""
        return await self._run(lambda queue: queue.backup(directory, progress=progress))

    async def compact(
        self,
        *,
        progress: Progress | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> CompactionResult:
        """Drop ended jobs and give room back; see :meth:`Queue.compact`.

        ``progress`` and ``stopped`` are called in another thread.
        """
        return await self._run(
            lambda queue: queue.compact(progress=progress, stopped=stopped)
        )

    async def workers(self) -> tuple[WorkerEntry, ...]:
        """Return the workers on this store that are alive; see :meth:`Queue.workers`."""
        return await self._run(lambda queue: queue.workers())

    async def set_aside(self) -> tuple[SetAside, ...]:
        """Return what repairs took out of the log; see :meth:`Queue.set_aside`."""
        return await self._run(lambda queue: queue.set_aside())

    async def read_set_aside(self, name: str) -> bytes:
        """Return the bytes of one entry of ``set_aside``, by its name."""
        return await self._run(lambda queue: queue.read_set_aside(name))
