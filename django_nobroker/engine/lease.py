"""Fencing tokens and deadlines (pure)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

#: How long a failed job waits: queue and number of the attempt -> seconds.
Delay = Callable[[str, int], float]


class Token(NamedTuple):
    """Names one lease for ever: no two leases of a store share it.

    The position alone would not do: a power cut may lose the lease record, and
    another one may then be written at the same place. Every recovery raises the
    epoch, durably, before anything else is written.
    """

    epoch: int
    position: int


def heartbeat_deadline(now: float, timeout: float) -> float:
    """Return the deadline after a heartbeat: never later than one timeout from now."""
    return now + timeout


def extended_deadline(current: float, now: float, seconds: float) -> float:
    """Return the deadline after an explicit extension: it never gets shorter."""
    return max(current, now + seconds)
