"""Finds the fenced blocks of a Markdown page and what their markers ask for.

A marker is a comment on the line before the fence: ``run`` is a script to execute,
``file`` a file of the reader's project, ``output`` what the script of that name
prints.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

_FENCED = re.compile(
    r"(?:^<!-- (?P<role>run|file|output|command): (?P<name>\S+) -->\n)?"
    r"^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """One fenced block; role and name are empty without a marker."""

    page: Path
    language: str
    text: str
    role: str
    name: str


def snippets(page: Path) -> list[Snippet]:
    """All fenced blocks of a page, in order."""
    return [
        Snippet(
            page=page,
            language=found["language"],
            text=found["text"],
            role=found["role"] or "",
            name=found["name"] or "",
        )
        for found in _FENCED.finditer(page.read_text(encoding="utf-8"))
    ]


def chosen(page: Path, role: str) -> dict[str, str]:
    """Texts of the blocks with one role, by name, in order."""
    return {found.name: found.text for found in snippets(page) if found.role == role}
