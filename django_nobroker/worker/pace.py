"""How many jobs a thread of a worker leases at once (pure).

Jobs that take next to no time are leased and settled together, so that many share one
transaction and one sync. A job that takes its time is leased alone: nothing waits
behind it that another worker could do, and a crash repeats no more than was going on.
"""

from __future__ import annotations

#: The jobs of one batch take about so many seconds together.
BUDGET = 0.005


class Pace:
    """What a thread has learned from the jobs that it ran; it begins with one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = 1

    def learn(self, longest: float) -> None:
        """Take notice of a batch whose longest job took so many seconds."""
        fit = self._most if longest * self._most <= BUDGET else int(BUDGET / longest)
        self.size = max(1, min(2 * self.size, fit))
