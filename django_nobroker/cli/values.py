"""Arguments of the command line as values, or what they must be instead (pure)."""

from __future__ import annotations

import json
import math
import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import TypeVar

from django_nobroker import limits

T = TypeVar("T")

_AGE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *([smhdw]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def _parsed(
    convert: Callable[[str], T], fits: Callable[[T], bool], wanted: str
) -> Callable[[str], T]:
    def parse(text: str) -> T:
        try:
            value = convert(text)
        except ValueError:
            pass
        else:
            if fits(value):
                return value
        raise ArgumentTypeError(f"must be {wanted}, not {text!r:.80}")

    return parse


count = _parsed(int, lambda n: n >= 1, "a whole number of at least 1")
position = _parsed(int, lambda n: n >= 0, "a position in the log, a whole number")
seconds = _parsed(
    float, lambda s: math.isfinite(s) and s >= 0, "a number of seconds, at least 0"
)
seconds_above_zero = _parsed(
    float, lambda s: math.isfinite(s) and s > 0, "a number of seconds above 0"
)


def _age(text: str) -> float:
    found = _AGE.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return float(found[1]) * _UNITS[found[2]]


age = _parsed(_age, math.isfinite, "seconds, or a number with s, m, h, d or w (7d)")


def _limited(check: Callable[[str], T]) -> Callable[[str], T]:
    def parse(text: str) -> T:
        try:
            return check(text)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(str(error)) from error

    return parse


name = _limited(lambda text: limits.name(text, "it"))
priority = _limited(lambda text: limits.priority(int(text)))


def value(text: str) -> object:
    """Return the value of a JSON text, or the text itself if it is none."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


def function(text: str) -> tuple[str, str]:
    """Return module and function of ``MODULE:FUNCTION``; nothing is imported."""
    module, colon, path = text.partition(":")
    parts = [*module.split("."), *path.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise ArgumentTypeError(f"must be MODULE:FUNCTION, not {text!r:.80}")
    return module, path
