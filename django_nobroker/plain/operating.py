"""The part of a queue that looks after its store: figures, checks, copies."""

from __future__ import annotations

import os

from django_nobroker import limits, problems
from django_nobroker.engine import (
    backup,
    diagnostics,
    integrity,
    roster,
    setaside,
    verification,
)
from django_nobroker.engine.backup import BackupReport
from django_nobroker.engine.diagnostics import Diagnostics
from django_nobroker.engine.integrity import IntegrityReport
from django_nobroker.engine.replica import Progress, unwatched
from django_nobroker.engine.roster import WorkerEntry
from django_nobroker.engine.setaside import SetAside
from django_nobroker.engine.verification import VerificationReport
from django_nobroker.problems import Health

from .job import T
from .opening import OpenQueue

_MOST_ERRORS = 1000


class Operating(OpenQueue[T]):
    """What an operator asks of a queue and of the store that it is in."""

    def diagnostics(self) -> Diagnostics:
        """Return figures of the queue and its store, all from one moment.

        Nothing is changed and nothing repaired; the cost does not grow with the
        number of jobs.
        """
        return diagnostics.diagnose(
            self.opened(),
            self.name,
            diagnostics.Policy(
                fsync=self.fsync,
                max_pending=self.max_pending,
                lock_timeout=self.lock_timeout,
            ),
        )

    def health(self) -> Health:
        """Return what is wrong with the store, each with the command that mends it.

        ``ok`` is False when somebody has to act: jobs are due and no worker is alive
        that takes them, the disk is nearly full, the store has failed, or records that
        were acknowledged are damaged. Nothing is changed.
        """
        store = self.opened()
        return problems.health_of(store, problems.shell_commands(store.directory))

    def check_integrity(
        self,
        mode: str = integrity.FULL,
        max_errors: int = 100,
        *,
        progress: Progress | None = None,
    ) -> IntegrityReport:
        """Check the log of the store; what is wrong is in the report, not raised.

        ``quick`` looks at the segments and at the end, ``full`` at every record.
        ``progress(done, total)`` is called with bytes. Nothing is changed.
        """
        if limits.instance(mode, str, "mode") not in integrity.MODES:
            msg = f"mode must be one of {', '.join(integrity.MODES)}, not {mode!r:.40}."
            raise ValueError(msg)
        return integrity.check(
            self.opened(),
            mode=mode,
            max_errors=_most(max_errors),
            progress=progress or unwatched,
        )

    def verify(
        self, max_errors: int = 100, *, progress: Progress | None = None
    ) -> VerificationReport:
        """Check the whole log, and that the index is what a replay of it gives.

        A second index is built for it, beside the first one and of the same size.
        What is wrong with the index, ``rebuild_index`` mends. Nothing is changed.
        """
        return verification.verify(
            self.opened(),
            max_errors=_most(max_errors),
            progress=progress or unwatched,
        )

    def rebuild_index(self, *, progress: Progress | None = None) -> int:
        """Throw the index away and build it anew from the log; returns its jobs.

        No job is touched: the index is a replica that can be deleted at any time.
        """
        return verification.rebuild_index(self.opened(), progress=progress or unwatched)

    def backup(
        self, directory: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> BackupReport:
        """Copy the store to a new directory while it is used, and check the copy.

        The copy ends with a whole transaction and is a store like any other. Its
        parent directory has to exist. Raises ``DirectoryExistsError`` (which is a
        ``FileExistsError``) if there is something of that name, ``ValueError`` for a
        place inside the store, and ``StorageError`` if the disk refuses; then
        nothing is left of the copy. ``progress(done, total)`` is called with bytes.
        """
        return backup.backup(self.opened(), directory, progress=progress or unwatched)

    def workers(self) -> tuple[WorkerEntry, ...]:
        """Return the workers on this store, of any queue, that are alive now."""
        store = self.opened()
        return tuple(roster.alive(store.directory, store.vfs))

    def set_aside(self) -> tuple[SetAside, ...]:
        """Return what repairs took out of the log; nothing of it is ever thrown away."""
        store = self.opened()
        return setaside.listing(store.directory, store.vfs)

    def read_set_aside(self, name: str) -> bytes:
        """Return the bytes of one entry of ``set_aside``, by its name."""
        store = self.opened()
        return setaside.read(store.directory, name, store.vfs)


def _most(max_errors: int) -> int:
    limits.whole(max_errors, "max_errors", at_least=1)
    if max_errors > _MOST_ERRORS:
        msg = f"max_errors must be at most {_MOST_ERRORS}, not {max_errors}."
        raise ValueError(msg)
    return max_errors
