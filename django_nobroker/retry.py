"""How long a failed job waits before its next attempt (pure)."""

from __future__ import annotations

import random
from dataclasses import dataclass

from . import limits


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """Exponential backoff with a ceiling and proportional jitter.

    The delay after failed attempt ``n`` (1, 2, ...) is ``base * factor ** (n - 1)``
    seconds, at most ``max_delay``. A share ``jitter`` of it (0 = none, 1 = all) is
    replaced by a random part of that share, so that jobs that failed together do
    not come back together.
    """

    base: float = 1.0
    factor: float = 2.0
    max_delay: float = 300.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what cannot be a delay: wrong types, infinities, negatives."""
        for name in ("base", "factor", "max_delay", "jitter"):
            object.__setattr__(self, name, limits.seconds(getattr(self, name), name))
        if self.base < 0:
            msg = f"base must be >= 0, not {self.base!r}."
            raise ValueError(msg)
        if self.factor < 1:
            msg = f"factor must be >= 1, not {self.factor!r}."
            raise ValueError(msg)
        if self.max_delay < 0:
            msg = f"max_delay must be >= 0, not {self.max_delay!r}."
            raise ValueError(msg)
        if not 0 <= self.jitter <= 1:
            msg = f"jitter must be between 0 and 1, not {self.jitter!r}."
            raise ValueError(msg)

    def delay(self, attempt: int) -> float:
        """Return the seconds to wait after failed attempt ``attempt``; 0 before any."""
        if attempt <= 0 or self.base == 0:
            return 0.0
        try:
            ceiling = min(self.max_delay, self.base * self.factor ** (attempt - 1))
        except OverflowError:  # the power alone is beyond any ceiling
            ceiling = self.max_delay
        # S311: the jitter spreads load; it protects nothing.
        return ceiling * (1 - self.jitter * random.random())  # noqa: S311
