"""Reads a page as a browser would, so that tests see elements and not markup."""

from __future__ import annotations

from html.parser import HTMLParser

INLINE = {"a", "code", "span", "strong"}
VOID = {"br", "col", "hr", "img", "input", "link", "meta", "source"}


class Reader(HTMLParser):
    """Collects elements, the text of the content area, and form fields."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.inline: list[str] = []  # scripts and styles that are in the page itself
        self.rows: list[list[str]] = []  # cells of the package's own tables
        self._in_table = False
        self._open: list[str] = []
        self._text: list[str] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag, attrs):
        values = {name: value or "" for name, value in attrs}
        self.elements.append((tag, values))
        if tag == "table":
            self._in_table = "nobroker-table" in values.get("class", "")
        if self._in_table and tag == "tr":
            self.rows.append([])
        if self._in_table and tag in {"td", "th"}:
            self.rows[-1].append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag not in INLINE:
            self._text.append(" ")
        if tag == "table":
            self._in_table = False
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data):
        if self._open and self._open[-1] in {"script", "style"}:
            if data.strip():
                self.inline.append(data)
            return
        self._text.append(data)
        if self._in_table and {"td", "th"} & set(self._open):
            self.rows[-1][-1] = f"{self.rows[-1][-1]}{data}".strip()

    @property
    def text(self) -> str:
        return " ".join("".join(self._text).split())

    def all(self, tag: str, **attributes: str) -> list[dict[str, str]]:
        return [
            attrs
            for name, attrs in self.elements
            if name == tag and attributes.items() <= attrs.items()
        ]

    @property
    def buttons(self) -> list[str]:
        return [attrs["value"] for attrs in self.all("button", name="action")]

    @property
    def links(self) -> list[str]:
        return [attrs.get("href", "") for attrs in self.all("a")]

    def assert_harmless(self) -> None:
        """Nothing in the page runs, or is styled, other than from a file."""
        assert self.inline == []
        for tag, attrs in self.elements:
            assert "style" not in attrs, (tag, attrs)
            assert not [name for name in attrs if name.startswith("on")], (tag, attrs)
            assert tag not in {"style", "img", "iframe", "object", "base"}, (tag, attrs)
            assert tag != "script" or attrs.get("src", "").startswith("/static/")
            href = attrs.get("href", "")
            assert not href.lower().startswith("javascript:")


def read(response) -> Reader:
    """Return what the response shows; it must be a page."""
    assert response.status_code == 200, response.status_code
    return Reader(response.content.decode())
