"""Rows of text as a table that fits a terminal (pure)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django_nobroker.visible_text import visible_line

_GAP = "  "
#: A column that may be cut keeps so much, however narrow the terminal is.
_LEAST = 12


@dataclass(frozen=True, slots=True)
class Column:
    """A column: numbers stand at the right, and of long text the end may be cut."""

    title: str
    right: bool = False
    cut: bool = False


def rendered(
    columns: Sequence[Column], rows: Sequence[Sequence[object]], width: int | None
) -> Iterator[str]:
    """Yield the lines of a table, the titles first; ``width`` None: nothing is cut.

    What is foreign in the cells is made visible, so that each row is one line.
    """
    cells = [[visible_line(str(cell)) for cell in row] for row in rows]
    titles = [column.title for column in columns]
    widths = [
        max(map(columns_of, column)) for column in zip(titles, *cells, strict=True)
    ]
    if width is not None:
        _narrow(columns, widths, width)
    for row in (titles, *cells):
        line = _GAP.join(
            _fitted(cell, room, right=column.right)
            for cell, room, column in zip(row, widths, columns, strict=True)
        )
        yield line.rstrip()


def _narrow(columns: Sequence[Column], widths: list[int], width: int) -> None:
    """Take from the columns that may be cut, the last one first."""
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    for index in reversed(range(len(columns))):
        if over > 0 and columns[index].cut:
            least = max(_LEAST, columns_of(columns[index].title))
            taken = min(over, max(0, widths[index] - least))
            widths[index] -= taken
            over -= taken


def _fitted(text: str, room: int, *, right: bool) -> str:
    text = shortened(text, room)
    padding = " " * (room - columns_of(text))
    return padding + text if right else text + padding


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns_of, text))


def _columns_of(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) == "Cf":
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def shortened(text: str, room: int) -> str:
    """Return a text that takes no more than ``room`` columns, its end cut off."""
    if columns_of(text) <= room:
        return text
    kept, used = [], 1  # the sign that something is missing
    for letter in text:
        used += _columns_of(letter)
        if used > room:
            break
        kept.append(letter)
    return "".join(kept) + "…"
