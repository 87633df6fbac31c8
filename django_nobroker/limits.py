"""What the arguments of a queue may be, checked before anything is written (pure)."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TypeVar

T = TypeVar("T")

NAME_LIMIT = 200
_LAST_SECOND = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
PRIORITIES = (-(2**15), 2**15 - 1)


def name(value: object, what: str) -> str:
    """Return an id or a queue's name: 1 to 200 characters, none of them control characters."""
    if not isinstance(value, str):
        msg = f"{what} must be a string, not {type(value).__name__}."
        raise TypeError(msg)
    if not 1 <= len(value) <= NAME_LIMIT:
        msg = f"{what} must have 1 to {NAME_LIMIT} characters, not {len(value)}."
        raise ValueError(msg)
    if not value.isprintable() and any(
        ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in value
    ):
        msg = f"{what} must not hold control characters: {value!r}."
        raise ValueError(msg)
    return value


def whole(value: object, what: str, *, at_least: int | None = None) -> int:
    """Return an integer (a bool is none)."""
    if isinstance(value, bool) or not isinstance(value, int):
        msg = f"{what} must be an integer, not {type(value).__name__}."
        raise TypeError(msg)
    if at_least is not None and value < at_least:
        msg = f"{what} must be at least {at_least}, not {value}."
        raise ValueError(msg)
    return value


def priority(value: object) -> int:
    """Return a priority; higher is sooner."""
    low, high = PRIORITIES
    checked = whole(value, "priority")
    if not low <= checked <= high:
        msg = f"priority must be between {low} and {high}, not {checked}."
        raise ValueError(msg)
    return checked


def seconds(
    value: object,
    what: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
) -> float:
    """Return a finite number of seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = f"{what} must be a number of seconds, not {type(value).__name__}."
        raise TypeError(msg)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        msg = f"{what} must be finite, not {value!r:.40}."
        raise ValueError(msg)
    if above is not None and number <= above:
        msg = f"{what} must be more than {above:g} seconds, not {number:g}."
        raise ValueError(msg)
    if at_least is not None and number < at_least:
        msg = f"{what} must be >= {at_least:g} seconds, not {number:g}."
        raise ValueError(msg)
    return number


def delay(value: object, now: float) -> float:
    """Return seconds until a job is due: negative means now, the year 9999 is the end."""
    number = max(0.0, seconds(value, "delay"))
    if now + number > _LAST_SECOND:
        msg = f"delay must end before the year 10000, not {number:g} seconds from now."
        raise ValueError(msg)
    return number


def function(value: object, what: str) -> None:
    """Check that something can be called."""
    if not callable(value):
        msg = f"{what} must be callable, not {type(value).__name__}."
        raise TypeError(msg)


def instance(value: object, kind: type[T], what: str) -> T:
    """Return an object of a class."""
    if not isinstance(value, kind):
        msg = f"{what} must be a {kind.__name__}, not {type(value).__name__}."
        raise TypeError(msg)
    return value


def exceptions(value: object, what: str) -> tuple[type[BaseException], ...]:
    """Return several classes of exceptions."""
    if not isinstance(value, tuple | list) or not all(
        isinstance(one, type) and issubclass(one, BaseException) for one in value
    ):
        msg = f"{what} must be a tuple of exception classes, not {value!r:.80}."
        raise TypeError(msg)
    return tuple(value)
