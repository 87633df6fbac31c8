"""Reads the value of one option, or says what it must be instead.

Each reader takes what stands in the settings and returns the value that the
package works with. It raises ``ValueError`` with the end of a sentence that
begins with the option's name: "must be ...".
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from .retry import BackoffPolicy

T = TypeVar("T")
Reader = Callable[[object], T]

_HIGHEST_MODE = 0o777


def _refuse(wanted: str, value: object) -> ValueError:
    shown = repr(value)
    return ValueError(f"must be {wanted}, not {shown[:80]}.")


def flag(value: object) -> bool:
    """Read a boolean; other truthy values are more often mistakes than intentions."""
    if not isinstance(value, bool):
        raise _refuse("True or False", value)
    return value


def text(value: object) -> str:
    """Read a string that is not empty."""
    if not isinstance(value, str) or not value:
        raise _refuse("a non-empty string", value)
    return value


def flag_or_alias(value: object) -> bool | str:
    """Read a boolean or the alias of a database."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or not value:
        raise _refuse("True, False or the alias of a database", value)
    return value


def whole_number(*, at_least: int) -> Reader[int]:
    """Read an ``int`` (a ``bool`` is none) that is not below ``at_least``."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
            raise _refuse(f"a whole number of at least {at_least}", value)
        return value

    return read


def seconds(*, above: float | None = None) -> Reader[float]:
    """Read a finite number of seconds, at least 0 or more than ``above``."""
    wanted = "at least 0" if above is None else f"more than {above:g}"

    def read(value: object) -> float:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
            or (value < 0 if above is None else value <= above)
        ):
            raise _refuse(f"a number of seconds, {wanted}", value)
        return float(value)

    return read


def optional(read: Reader[T]) -> Reader[T | None]:
    """Read ``None`` as it is and anything else with ``read``."""
    return lambda value: None if value is None else read(value)


def path(value: object) -> Path:
    """Read a path given as a string or a ``Path``; it may still be relative."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise _refuse("a path", value)
    given = os.fspath(value)
    if not isinstance(given, str) or "\0" in given:
        raise _refuse("a path", value)
    return Path(given)


def file_mode(value: object) -> int:
    """Read the permission bits of a file; its owner must be able to use it."""
    owner = 0o600
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not 0 <= value <= _HIGHEST_MODE
        or value & owner != owner
    ):
        shown = oct(value) if type(value) is int else value
        raise _refuse("a mode such as 0o660, readable by its owner", shown)
    return value


def backoff(base: BackoffPolicy) -> Reader[BackoffPolicy]:
    """Read a mapping; what it does not name is taken from ``base``."""
    parts = asdict(base)

    def read(value: object) -> BackoffPolicy:
        if isinstance(value, BackoffPolicy):
            return value
        if not isinstance(value, Mapping) or not value.keys() <= parts.keys():
            raise _refuse(f"a mapping with the keys {', '.join(parts)}", value)
        try:
            return BackoffPolicy(**{**parts, **value})
        except (TypeError, ValueError) as error:
            raise ValueError(f"is wrong: {error}") from error

    return read


def words(value: object) -> tuple[str, ...]:
    """Read a list of strings; a single string is a mistake, not a list of letters."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise _refuse("a list of strings", value)
    found = tuple(value)
    if not all(isinstance(word, str) and word for word in found):
        raise _refuse("a list of strings", value)
    return found
