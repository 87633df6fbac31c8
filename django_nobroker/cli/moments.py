"""Times, spans and sizes as a person reads them (pure but for the local time zone)."""

from __future__ import annotations

import time

_SPANS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def moment(seconds: float | None) -> str:
    """Return a time of the epoch as local date and time; "" for None."""
    if seconds is None:
        return ""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):
        # A record may say anything, and its time is no reason to hide the rest.
        return f"{seconds:.0f}"


def span(seconds: float) -> str:
    """Return a length of time in its largest unit."""
    for size, unit in _SPANS:
        if seconds >= size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    if seconds >= 10:
        return f"{seconds:.0f} s"
    if seconds >= 0.1:
        return f"{seconds:.1f} s"
    if seconds >= 0.001:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds * 1e6:.0f} µs"


def when(seconds: float, now: float) -> str:
    """Return a time as seen from ``now``: how long ago, or how far off."""
    away = seconds - now
    if abs(away) < 1:
        return "now"
    return f"in {span(away)}" if away > 0 else f"{span(-away)} ago"


def size(count: float) -> str:
    """Return a number of bytes in its largest unit."""
    for unit_size, unit in _SIZES:
        if count >= unit_size:
            return f"{count / unit_size:.1f} {unit}"
    return f"{count:.0f} bytes"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: "1 job", "2 jobs"."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
