"""Counting what a worker does, from all its threads."""

from __future__ import annotations

import threading
from collections import Counter

from django_nobroker.seam import WorkerStats


class Tally:
    """The numbers that ``WorkerStats`` reports in the end."""

    def __init__(self) -> None:
        # Protects the numbers; taken alone.
        self._mutex = threading.Lock()
        self._numbers: Counter[str] = Counter()

    def add(self, **numbers: int) -> None:
        """Count more of each; the names are those of ``WorkerStats``."""
        with self._mutex:
            for name, number in numbers.items():
                self._numbers[name] += number

    def stats(self) -> WorkerStats:
        """Return the numbers as they are now."""
        with self._mutex:
            return WorkerStats(**self._numbers)
