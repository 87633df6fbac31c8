"""How many jobs of a queue may wait or run at once, checked where they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .changes import Changes
from .clock import Clock
from .errors import QueueFull

T = TypeVar("T")

#: A producer that waits for room looks again after these seconds, doubling.
FIRST_LOOK, LONGEST_LOOK = 0.01, 0.25


class NeverFits(QueueFull):
    """More jobs at once than the queue may ever hold: waiting would not help."""


def check(changes: Changes, queue: str, more: int, most: int) -> None:
    """Raise ``QueueFull`` unless ``more`` jobs fit under ``most``.

    Ready, delayed and leased jobs count. The caller holds the lock, so nobody else
    takes the room between this look and the write.
    """
    if more > most:
        raise NeverFits(f"{more} jobs at once, but the queue {queue} may hold {most}.")
    number = changes.queue_number(queue)
    if number is None:
        return
    changes.flush()
    ready, delayed, leased, *_ = changes.counts(number)
    pending = ready + delayed + leased
    if pending + more > most:
        raise QueueFull(f"The queue {queue} holds {pending} jobs and may hold {most}.")


def waiting_for_room(enqueue: Callable[[], T], clock: Clock, *, until: float) -> T:
    """Return what ``enqueue`` returns, trying again while the queue is full.

    ``until`` is on the monotonic clock; then ``QueueFull`` is raised, and at once if
    the jobs can never fit.
    """
    pause = FIRST_LOOK
    while True:
        try:
            return enqueue()
        except NeverFits:
            raise
        except QueueFull:
            left = until - clock.monotonic()
            if left <= 0:
                raise
            clock.sleep(min(pause, left))
            pause = min(2 * pause, LONGEST_LOOK)
