"""Counting what a worker does, from all its threads."""

from __future__ import annotations

import threading
from dataclasses import replace

from django_nobroker.seam import WorkerStats


class Tally:
    """The numbers that ``WorkerStats`` reports in the end."""

    def __init__(self) -> None:
        # Protects the numbers; taken alone.
        self._mutex = threading.Lock()
        self._stats = WorkerStats()

    def add(
        self,
        *,
        leased: int = 0,
        succeeded: int = 0,
        failed: int = 0,
        dead: int = 0,
        lost_leases: int = 0,
    ) -> None:
        """Count more of each."""
        with self._mutex:
            now = self._stats
            self._stats = replace(
                now,
                leased=now.leased + leased,
                succeeded=now.succeeded + succeeded,
                failed=now.failed + failed,
                dead=now.dead + dead,
                lost_leases=now.lost_leases + lost_leases,
            )

    def stats(self) -> WorkerStats:
        """Return the numbers as they are now."""
        with self._mutex:
            return self._stats
