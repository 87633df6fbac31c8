"""A process that dies at a chosen call: nothing of it happens from then on."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from django_nobroker.engine.vfs import Vfs
from tests.faults.files import CALLS, Killed

#: What the kernel does for a process that is gone.
BURIAL = frozenset({"close"})
SYNCS = frozenset({"fsync", "fdatasync"})


class Dying(Vfs):
    """The real file system for a process that can be killed at a call.

    Syncs are left out: a killed process loses nothing of what it has written.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.is_dead = False
        self._at: tuple[int, bool] | None = None
        for name in CALLS:
            setattr(self, name, self._through(name, getattr(Vfs, name)))

    def _through(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any, **named: Any) -> Any:
            if name in BURIAL:
                return real(*arguments, **named)
            if self.is_dead:
                raise Killed
            number = len(self.calls)
            self.calls.append(name)
            if self._at == (number, False):
                self._die()
            answer: Any = None
            try:
                if name not in SYNCS:
                    answer = real(*arguments, **named)
            except OSError:
                if self._at == (number, True):
                    self._die()
                raise
            if self._at == (number, True):
                if name == "open":
                    os.close(answer)
                self._die()
            return answer

        return made

    def _die(self) -> None:
        self.is_dead = True
        raise Killed

    def live_until(self, number: int, *, after: bool) -> None:
        """Count calls from 0 on again; die before or after the call of that number."""
        self.calls.clear()
        self._at = number, after

    def live(self) -> None:
        """Count calls from 0 on again, and do not die."""
        self.calls.clear()
        self._at = None
