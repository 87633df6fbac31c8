"""How many jobs the threads of a worker may still take, all together."""

from __future__ import annotations

import threading


class Quota:
    """``max_jobs`` of one run; a place is reserved before a job is leased.

    So all threads together never run more jobs than that. ``most`` None is no limit.
    """

    def __init__(self, most: int | None, sharers: int) -> None:
        self._most = most
        self._sharers = sharers
        # Protects the number; taken alone.
        self._mutex = threading.Lock()
        self._reserved = 0

    def reserve(self, count: int) -> int:
        """Reserve up to ``count`` places, a fair share of what is left; 0 if none is."""
        with self._mutex:
            if self._most is not None:
                left = self._most - self._reserved
                count = min(count, left, max(1, left // self._sharers))
            self._reserved += count
            return count

    def give_up(self, count: int) -> None:
        """Give places back that were not used."""
        with self._mutex:
            self._reserved -= count
