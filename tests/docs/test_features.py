"""The page for those who come from another queue names every feature, and tests that exist."""

from __future__ import annotations

import ast
import functools
import re
from typing import NamedTuple

import pytest

from tests.docs.snippets import ROOT

PAGE = ROOT / "docs" / "features.md"
#: By section of the page: the letter of its ids, and how many features there are.
SECTIONS = {
    "1. The engine": ("A", 74),
    "2. Durability and recovery": ("B", 31),
    "3. Compaction and retention": ("C", 14),
    "4. Workers": ("D", 18),
    "5. Coroutines": ("E", 12),
    "6. Types and serializers": ("F", 10),
    "7. Full queues": ("G", 13),
    "8. Diagnostics, checks and backups": ("H", 17),
    "10. The command line": ("J", 10),
}
HEADING = re.compile(r"^## (?P<name>\d+\. .+)$", re.MULTILINE)
REFERENCE = re.compile(r"`(?P<path>tests/[\w/]+\.py)::(?P<test>[\w:]+)`")
#: Begins what is said of a feature that is deliberately missing.
MISSING = "not here: "


class Row(NamedTuple):
    """One feature, as the page tells it."""

    id: str
    feature: str
    here: str
    shown_by: str


@functools.cache
def sections() -> dict[str, list[Row]]:
    """Return the features of the page by section, in order."""
    _, *parts = HEADING.split(PAGE.read_text(encoding="utf-8"))
    found = {}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
        found[name] = [
            Row(*(cell.strip() for cell in row.strip("|").split("|"))) for row in rows
        ]
    return found


@functools.cache
def defined_in(path: str) -> set[str]:
    """Return the tests that a module defines, as pytest spells them, without importing it."""
    found = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        elif isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}::{one.name}"
                for one in node.body
                if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return {name for name in found if name.startswith(("test_", "Test"))}


ROWS = [row for rows in sections().values() for row in rows]


def test_no_section_is_left_out():
    assert set(sections()) == {*SECTIONS, "9. The event bus"}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_feature_of_a_section_has_one_row(section):
    letter, count = SECTIONS[section]

    assert [row.id for row in sections()[section]] == [
        f"{letter}{number:02}" for number in range(1, count + 1)
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_feature_is_shown_by_a_test_or_its_absence_has_a_reason(row):
    assert row.feature
    if row.here.startswith(MISSING):
        assert len(row.here) > len(MISSING)
    else:
        assert REFERENCE.search(row.shown_by), row.shown_by


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_tests_that_a_feature_names_exist(row):
    named = [(one["path"], one["test"]) for one in REFERENCE.finditer(row.shown_by)]
    missing = [
        f"{path}::{test}"
        for path, test in named
        if not (ROOT / path).exists() or test not in defined_in(path)
    ]

    assert missing == []
    # Nothing else stands there: a name that is no reference would not be looked at.
    assert not REFERENCE.sub("", row.shown_by).strip(", -")
