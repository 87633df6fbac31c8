"""A progress bar, on a terminal only."""

from __future__ import annotations

import shutil
import time
from types import TracebackType
from typing import Self

from django_nobroker.visible_text import visible_line

from .screen import Stream

_PAUSE = 0.1  # seconds between two pictures
_WIDEST = 40
_CLEAR = "\r\x1b[K"


class Bar:
    """Called with how much is done of how much; gone when its block ends."""

    def __init__(self, stream: Stream, doing: str) -> None:
        self._stream = stream
        self._doing = visible_line(doing)
        self._shows = stream.isatty()
        self._next = 0.0
        self._is_drawn = False

    def __call__(self, done: float, total: float) -> None:
        """Draw it, unless it was drawn a moment ago."""
        now = time.monotonic()
        if self._shows and now >= self._next:
            self._next = now + _PAUSE
            self._draw(min(1.0, done / total) if total else 1.0)

    def _draw(self, share: float) -> None:
        percent = f"{100 * share:3.0f}%"
        room = shutil.get_terminal_size().columns - len(self._doing) - len(percent) - 6
        width = max(0, min(_WIDEST, room))
        full = round(share * width)
        picture = "#" * full + "." * (width - full)
        self._stream.write(f"{_CLEAR}{self._doing} [{picture}] {percent}")
        self._stream.flush()
        self._is_drawn = True

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar away, whatever ended the work."""
        if self._is_drawn:
            self._stream.write(_CLEAR)
            self._stream.flush()
