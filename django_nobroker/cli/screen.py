"""Where a command writes: sentences and tables for people, or JSON lines for programs.

Whatever is foreign (payloads, errors, names) passes through here and is made visible:
no job can send a terminal anything but text.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Protocol

from django_nobroker.visible_text import visible_json, visible_line, visible_lines

from .table import Column, rendered, shortened

_BOLD, _RED, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[0m"


class Stream(Protocol):
    """What can be written to, a management command's wrapper too."""

    def write(self, text: str, /) -> object:
        """Write a text."""

    def flush(self) -> object:
        """Write what was held back."""

    def isatty(self) -> bool:
        """Tell whether it is a terminal."""


class Screen:
    """The answer of a command on ``out``, remarks about it on ``notes``."""

    def __init__(self, out: Stream, notes: Stream, *, as_json: bool = False) -> None:
        self._out = out
        self.notes = notes
        self.as_json = as_json
        is_terminal = out.isatty()
        #: Columns of the terminal; None where nothing needs to be cut.
        self.width = shutil.get_terminal_size().columns if is_terminal else None
        self._has_style = (
            is_terminal
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
        )
        encoding = getattr(out, "encoding", None) or "utf-8"
        self._ascii_only = not encoding.lower().replace("-", "").startswith("utf")

    def line(self, text: str = "") -> None:
        """Write one line for people."""
        self._out.write(visible_line(text) + "\n")

    def lines(self, text: str) -> None:
        """Write text of several lines, as it is laid out."""
        self._out.write(visible_lines(text) + "\n")

    def heading(self, text: str) -> None:
        """Write a line that stands out."""
        self._out.write(self._styled(_BOLD, visible_line(text)) + "\n")

    def alarm(self, text: str) -> None:
        """Write a line about something that is wrong."""
        self._out.write(self._styled(_RED, visible_line(text)) + "\n")

    def cut_line(self, text: str) -> None:
        """Write one line, cut where the terminal ends."""
        text = visible_line(text)
        if self.width is not None:
            text = shortened(text, self.width)
        self._out.write(text + "\n")

    def table(
        self, columns: Sequence[Column], rows: Sequence[Sequence[object]]
    ) -> None:
        """Write rows under their titles."""
        titles, *lines = rendered(columns, rows, self.width)
        self._out.write(self._styled(_BOLD, titles) + "\n")
        for line in lines:
            self._out.write(line + "\n")

    def facts(self, facts: Mapping[str, object]) -> None:
        """Write names and values, one a line; those without a value are left out."""
        shown = {
            name: str(value) for name, value in facts.items() if value not in (None, "")
        }
        room = max(map(len, shown), default=0)
        for name, value in shown.items():
            self.line(f"{name:<{room}}  {value}")

    def values(self, values: Mapping[str, object]) -> None:
        """Write one object as a line of JSON."""
        text = json.dumps(
            values, ensure_ascii=self._ascii_only, separators=(", ", ": ")
        )
        self._out.write(visible_json(text) + "\n")

    def note(self, text: str) -> None:
        """Write a remark that is no part of the answer."""
        self.notes.write(visible_line(text) + "\n")

    def question(self, text: str) -> None:
        """Write a question, so that the answer is typed behind it."""
        self.notes.write(visible_line(text) + " ")
        self.notes.flush()

    def flush(self) -> None:
        """Write what was held back, so that a reader of a pipe sees it now."""
        self._out.flush()

    def _styled(self, style: str, text: str) -> str:
        return f"{style}{text}{_PLAIN}" if self._has_style else text
