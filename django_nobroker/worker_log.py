"""Makes the worker's log lines visible where the project's logging does not."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_LEVELS = {0: logging.WARNING, 1: logging.INFO}  # by --verbosity; above: DEBUG


class Writes(Protocol):
    """A stream, or what a management command has in its place."""

    def write(self, text: str, /) -> object:
        """Write the text."""

    def flush(self) -> object:
        """Write what was held back."""


@contextmanager
def visible_log(stream: Writes, verbosity: int) -> Iterator[None]:
    """Print the package's lines to ``stream``, unless a handler prints them already."""
    log = logging.getLogger("django_nobroker")
    if _would_print(log):
        yield
        return
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s"))
    before = log.level
    log.addHandler(handler)
    log.setLevel(_LEVELS.get(verbosity, logging.DEBUG))
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def _would_print(log: logging.Logger) -> bool:
    """Say whether a line of the log reaches any handler that lets it through.

    A project may have handlers that filter everything out, as Django's own console
    handler does when DEBUG is off.
    """
    line = log.makeRecord(log.name, logging.ERROR, __file__, 0, "", (), None)
    place: logging.Logger | None = log
    while place is not None:
        for handler in place.handlers:
            if handler.level <= line.levelno and handler.filter(line):
                return True
        place = place.parent if place.propagate else None
    return False
