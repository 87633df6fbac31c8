"""The exceptions by which a task, or its worker, says how an attempt ends.

A task raises :class:`Retry` and :class:`Reject`. The others are never raised into
a task's caller: they name, in the errors of a result, what befell the attempt.
This module imports no Django.
"""

from __future__ import annotations

import math
from datetime import timedelta


class Retry(Exception):  # noqa: N818 - it reads as the order that it is.
    """Raised by a task: this attempt failed, try again.

    ``after`` is the delay in seconds, or a ``timedelta``; without it the task's
    backoff decides. The attempt counts, and the last one is not repeated.
    """

    def __init__(
        self, message: str = "", *, after: float | timedelta | None = None
    ) -> None:
        super().__init__(message)
        self.after = None if after is None else _seconds(after)


class Reject(Exception):  # noqa: N818 - it reads as the order that it is.
    """Raised by a task: no attempt will ever succeed, to the dead letters at once."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = str(reason)


class WorkerLost(Exception):  # noqa: N818 - it names what happened.
    """The worker died or hung, so the lease of this attempt expired."""


class Discarded(Exception):  # noqa: N818 - it names what happened.
    """Somebody threw the job away before it succeeded."""


class TaskTimeout(TimeoutError):  # noqa: N818 - it is named after TimeoutError.
    """The task ran longer than its ``timeout`` and was cancelled."""


def _seconds(after: object) -> float:
    if isinstance(after, timedelta):
        after = after.total_seconds()
    if isinstance(after, bool) or not isinstance(after, int | float):
        raise TypeError(
            "after must be a number of seconds or a timedelta, "
            f"not {type(after).__name__}."
        )
    if not math.isfinite(after) or after < 0:
        raise ValueError(f"after must be finite and at least 0 seconds, not {after!r}.")
    return float(after)
