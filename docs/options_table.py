"""The directive ``options``: a table of a backend's options, read from the code."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any, ClassVar

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from django_nobroker.options import Options, QueueOptions
from django_nobroker.retry import BackoffPolicy


def spelled(option: Field[Any]) -> str:
    """Return the default as one writes it in the settings."""
    default = option.default
    if default is MISSING:
        return '`BASE_DIR / "jobs"`'
    if option.name in {"queues", "test"}:
        return "`{}`"
    if option.name == "file_mode":
        return f"`0o{default:o}`"
    if isinstance(default, BackoffPolicy):
        pairs = (
            f'"{part.name}": {getattr(default, part.name)}' for part in fields(default)
        )
        return f"`{{{', '.join(pairs)}}}`"
    if isinstance(default, tuple):
        return ", ".join(f"`{word}`" for word in default)
    return f"`{default}`"


class OptionsTable(SphinxDirective):
    """Shows every option with its default, its meaning and where it may stand."""

    required_arguments: ClassVar[int] = 0

    def run(self) -> list[nodes.Node]:
        """Write the table as Markdown and let the page's own parser read it."""
        per_queue = {option.name for option in fields(QueueOptions)}
        known = sorted(fields(Options), key=lambda option: option.name)
        lines = [
            "| option | default | meaning | per queue |",
            "| --- | --- | --- | --- |",
        ]
        lines += [
            f"| `{option.name.upper()}` | {spelled(option)} "
            f"| {option.metadata['help']} | {'yes' if option.name in per_queue else ''} |"
            for option in known
        ]
        node = nodes.container()
        self.state.nested_parse(StringList(lines, source="options"), 0, node)
        return list(node.children)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("options", OptionsTable)
    return {"parallel_read_safe": True}
