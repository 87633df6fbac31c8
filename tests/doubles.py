"""Clocks and disks that a test controls, handed in through the engine's seams."""

from __future__ import annotations

import errno
import threading

from django_nobroker.engine.clock import Clock
from django_nobroker.engine.vfs import Vfs

#: Long enough for a stalled machine; no test that passes waits for so long.
PATIENCE = 30.0


class SteppedClock(Clock):
    """The real clocks, moved on by a test instead of by waiting."""

    def __init__(self):
        self._ahead = 0.0

    def wall(self):
        return Clock.wall() + self._ahead

    def boot(self):
        return super().boot() + self._ahead

    def advance(self, seconds):
        self._ahead += seconds


class WatchedDisk(Vfs):
    """A disk whose writes and syncs can be waited for, and which can be full or broken.

    ``full`` refuses every write of the log with ENOSPC, ``broken`` every sync with
    EIO. ``full_for`` refuses so many writes and has room again, ``refuses`` those that
    hold these bytes.
    """

    def __init__(self):
        self.calls = []
        self.refused = 0
        self.full = False
        self.full_for = 0
        self.refuses = None
        self.broken = False
        self._changed = threading.Condition()

    def write(self, fd, data):
        with self._changed:
            chosen = self.refuses is not None and self.refuses in data
            if chosen or ((self.full or self.full_for) and b'"op":' in data):
                self.full_for = max(0, self.full_for - 1)
                self.refused += 1
                self._changed.notify_all()
                raise OSError(errno.ENOSPC, "No space left on device")
            self.calls.append(bytes(data))
            self._changed.notify_all()
        return super().write(fd, data)

    def fdatasync(self, fd):
        if self.broken:
            raise OSError(errno.EIO, "Input/output error")
        self.calls.append("sync")
        return super().fdatasync(fd)

    def written(self, operation):
        """Count the records of one operation that were written so far."""
        word = b'"op":"%b"' % operation.encode()
        return sum(call.count(word) for call in self.calls if call != "sync")

    def wait_for(self, condition):
        """Return when a condition holds that only writing can bring about."""
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE), "it never happened"
