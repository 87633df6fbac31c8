"""Every clock and every sleep of the engine goes through here.

The wall clock only says when a job was enqueued or is scheduled; leases and
retries run on the boot clock, which no administrator can step.
"""

from __future__ import annotations

import time

from . import host

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """The real clocks; tests hand in another one."""

    wall = staticmethod(time.time)
    #: For waiting no longer than somebody asked; never compared across processes.
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)

    def boot(self) -> float:
        """Return seconds since the machine started, suspended time included."""
        return time.clock_gettime(_BOOT) - host.boot_clock_offset()

    def boot_id(self) -> bytes:
        """Return 16 bytes that name this start of the machine."""
        return host.boot_id()
