"""What a page points to exists."""

from __future__ import annotations

import re

import pytest

from tests.docs.snippets import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
PATH = re.compile(r"`(?P<path>[\w./-]+(?:\.\w+|/))`")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def prose(page):
    return FENCED.sub("", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_local_links_lead_somewhere(page):
    broken = []
    for found in LINK.finditer(prose(page)):
        target = found["target"]
        if target.startswith(("https://", "http://", "mailto:", "#")):
            continue
        if not (page.parent / target.partition("#")[0]).exists():
            broken.append(target)

    assert broken == []


def test_the_table_of_changes_names_files_that_exist():
    """ "I want to change X -> open Y" is only as good as Y."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.partition("## I want to change")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    named = [found["path"] for row in rows for found in PATH.finditer(row)]
    assert len(named) >= len(rows) > 5

    missing = [
        path
        for path in named
        if not (ROOT / path).exists() and not (ROOT / "django_nobroker" / path).exists()
    ]

    assert missing == []


def test_the_map_of_modules_is_complete():
    """A module that the map does not name cannot be found by a newcomer."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.partition("## Map of the modules")[2].partition("\n## ")[0]
    named = {found["path"] for found in PATH.finditer(section)}
    package = ROOT / "django_nobroker"
    modules = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if "migrations" not in path.parts
        and (path.name != "__init__.py" or path.parent == package)
    }

    assert set() == modules - named, "not on the map"
    assert set() == {name for name in named if name.endswith(".py")} - modules, (
        "on the map, but not there"
    )


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        ("README.md", "## Reading the source"),
        ("docs/guarantees.md", "## How it is shown"),
    ],
)
def test_a_page_that_leads_to_the_source_names_files_that_exist(page, heading):
    text = prose(ROOT / page).partition(heading)[2]
    named = [found["path"] for found in PATH.finditer(text)]
    assert named

    assert [path for path in named if not (ROOT / path).exists()] == []
