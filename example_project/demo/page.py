"""What a visitor finds on a page: its forms, its tables and the status of jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from html.parser import HTMLParser

from demo.failure import DemoError

Attributes = dict[str, str]


@dataclass(slots=True)
class Form:
    """A form as a browser would send it if nobody touched it."""

    action: str
    method: str
    is_multipart: bool
    names: set[str] = field(default_factory=set)  # of every control
    values: list[tuple[str, str]] = field(default_factory=list)  # what would be sent
    # Buttons that say something: (name, value).
    buttons: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Page:
    """One page, read."""

    url: str
    text: str
    forms: list[Form] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    jobs: dict[str, str] = field(default_factory=dict)  # status by id

    def __post_init__(self) -> None:
        """Read the page."""
        reader = _Reader(self)
        reader.feed(self.text)
        reader.close()

    def form(self, *names: str) -> Form:
        """Return the form that has these controls or buttons."""
        for form in self.forms:
            if {*names} <= form.names | {name for name, _ in form.buttons}:
                return form
        raise DemoError(f"{self.url} has no form with {', '.join(names)}.")

    def rows(self, heading: str) -> list[dict[str, str]]:
        """Return the rows of the table with a heading, each by its headings."""
        for table in self.tables:
            head, *rows = table or [[]]
            if heading in head:
                return [dict(zip(head, row, strict=False)) for row in rows]
        return []

    def new_job(self, known: Iterable[str]) -> str:
        """Return the id of the one job on the page that is not known yet."""
        new = [job for job in self.jobs if job not in {*known}]
        if len(new) != 1:
            raise DemoError(f"{self.url} shows {len(new)} new jobs instead of one.")
        return new[0]


class _Reader(HTMLParser):
    """Fills a page while it walks over the tags."""

    def __init__(self, page: Page) -> None:
        super().__init__()
        self.page = page
        self.form: Form | None = None
        self.texts: list[list[str]] = []  # of the elements that are being collected
        self.select = ""
        self.options: list[tuple[str, bool]] = []
        self.area = ""
        self.job = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        match tag:
            case "form":
                self.form = Form(
                    action=given.get("action", ""),
                    method=given.get("method", "get").lower(),
                    is_multipart=given.get("enctype") == "multipart/form-data",
                )
                self.page.forms.append(self.form)
            case "table":
                self.page.tables.append([])
            case "tr" if self.page.tables:
                self.page.tables[-1].append([])
            case "td" | "th":
                self.texts.append([])
            case "span" if "data-job" in given:
                self.job = given["data-job"]
                self.texts.append([])
            case "input" | "button" | "select" | "option" | "textarea" if self.form:
                self._control(self.form, tag, given)

    def _control(self, form: Form, tag: str, given: Attributes) -> None:
        name, value, kind = (
            given.get("name", ""),
            given.get("value", ""),
            given.get("type"),
        )
        if tag == "option":
            self.options.append((value, "selected" in given))
        elif not name:
            return
        elif tag == "button" or kind in {"submit", "image"}:
            form.buttons.append((name, value))
        elif tag == "select":
            form.names.add(name)
            self.select, self.options = name, []
        elif tag == "textarea":
            form.names.add(name)
            self.area = name
            self.texts.append([])
        else:
            form.names.add(name)
            if kind in {"checkbox", "radio"}:
                if "checked" in given:
                    form.values.append((name, given.get("value", "on")))
            elif kind != "file":
                form.values.append((name, value))

    def handle_data(self, data: str) -> None:
        for text in self.texts:
            text.append(data)

    def handle_endtag(self, tag: str) -> None:
        match tag:
            case "form":
                self.form = None
            case "td" | "th" if self.texts and self.page.tables:
                self.page.tables[-1][-1].append(self._collected())
            case "span" if self.job:
                self.page.jobs[self.job] = self._collected()
                self.job = ""
            case "textarea" if self.form and self.area:
                self.form.values.append((self.area, self._collected()))
                self.area = ""
            case "select" if self.form and self.select and self.options:
                chosen = [value for value, is_chosen in self.options if is_chosen]
                self.form.values.append(
                    (self.select, (chosen or [self.options[0][0]])[0])
                )
                self.select = ""

    def _collected(self) -> str:
        return " ".join("".join(self.texts.pop()).split())
