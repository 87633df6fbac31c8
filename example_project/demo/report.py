"""Prints one line for each step of the demo."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

GREEN, RED, DIM, PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[2m", "\x1b[0m"
CLEAR_LINE = "\r\x1b[K"


@dataclass(slots=True)
class Report:
    """The lines; in colour and with a line in progress only on a terminal."""

    steps: int
    out: TextIO = field(default_factory=lambda: sys.stdout)
    number: int = 0

    @property
    def is_terminal(self) -> bool:
        """Whether somebody is watching."""
        return self.out.isatty() and os.environ.get("TERM") != "dumb"

    @contextmanager
    def step(self, title: str) -> Iterator[list[str]]:
        """Time a step and tick it; what it appends to the list is said after it."""
        self.number += 1
        place = f"{self.number:2}/{self.steps}"
        begun = time.monotonic()
        said: list[str] = []
        if self.is_terminal:
            self._write(f"{CLEAR_LINE}  {place}  {title} ...")
        try:
            yield said
        except KeyboardInterrupt:
            self._write(f"{self._start}  {place}  {title}: interrupted\n")
            raise
        except BaseException:
            self._write(f"{self._start}{self._mark('✗', 'x', RED)} {place}  {title}\n")
            raise
        took = self._dim(f"{time.monotonic() - begun:.1f} s")
        detail = self._dim(f" ({', '.join(said)})") if said else ""
        tick = self._mark("✓", "ok", GREEN)
        self._write(f"{self._start}{tick} {place}  {title}{detail}  {took}\n")

    def say(self, text: str = "") -> None:
        """Print a line that belongs to no step."""
        self._write(f"{text}\n")

    @property
    def _start(self) -> str:
        return CLEAR_LINE if self.is_terminal else ""

    def _mark(self, sign: str, plain: str, colour: str) -> str:
        encoding = getattr(self.out, "encoding", None) or "ascii"
        try:
            sign.encode(encoding)
        except UnicodeEncodeError:
            sign = plain
        return self._coloured(sign, colour)

    def _dim(self, text: str) -> str:
        return self._coloured(text, DIM)

    def _coloured(self, text: str, colour: str) -> str:
        if not self.is_terminal or os.environ.get("NO_COLOR"):
            return text
        return f"{colour}{text}{PLAIN}"

    def _write(self, text: str) -> None:
        self.out.write(text)
        self.out.flush()
