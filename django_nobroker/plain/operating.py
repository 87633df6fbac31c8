"""The part of a queue that looks after its store: figures, checks, copies."""

from __future__ import annotations

from typing import TypeVar

from django_nobroker.engine import diagnostics, roster, setaside
from django_nobroker.engine.diagnostics import Diagnostics
from django_nobroker.engine.roster import WorkerEntry
from django_nobroker.engine.setaside import SetAside

from .opening import OpenQueue

T = TypeVar("T")


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
