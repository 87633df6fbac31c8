"""What a subcommand is: its name, its arguments, and what it does with a call."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass

from django_nobroker.problems import Commands

from .place import Place
from .progress import Bar
from .screen import Screen


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a subcommand: its arguments, the store it is about, where to write."""

    args: Namespace
    place: Place
    screen: Screen

    @property
    def queue(self) -> str | None:
        """The queue that was named, None if none was."""
        queue: str | None = self.args.queue
        return queue

    @property
    def commands(self) -> Commands:
        """How other subcommands are spelt here."""
        return self.place.commands

    def progress(self, doing: str) -> Bar:
        """Return a progress bar; it shows on a terminal only."""
        return Bar(self.screen.notes, doing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One subcommand; ``run`` returns the exit code."""

    name: str
    help: str
    run: Callable[[Call], int]
    arguments: Callable[[ArgumentParser], object] = lambda _parser: None
    more: str = ""  # sentences that follow ``help`` in the command's own help
