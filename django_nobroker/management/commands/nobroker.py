"""``manage.py nobroker``: the command line on the store of a backend."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management import BaseCommand, CommandError
from django.core.management.base import CommandParser

from django_nobroker import __version__
from django_nobroker.cli import exit_codes, grammar, program
from django_nobroker.cli.screen import Screen
from django_nobroker.compat import DEFAULT_TASK_BACKEND_ALIAS
from django_nobroker.store_of_backend import place_of


class Command(BaseCommand):
    """Looks at the store of a backend, works on it, mends it."""

    help = (
        "Look at the store of a backend, work on it, mend it: what the command "
        "`nobroker` does, with the options of the backend."
    )
    # A store can be looked at and mended while something else is wrong.
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own declaration

    def get_version(self) -> str:
        """Return the version of this package for ``--version``."""
        return f"nobroker {__version__}"

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the subcommands."""
        grammar.declare(parser, _declare_backend)

    def handle(self, *_args: Any, **given: Any) -> None:
        """Run a subcommand; ends the process unless all is well."""
        if given["subcommand"] is None:
            self.print_help("manage.py", "nobroker")
            sys.exit(exit_codes.USAGE)
        # Not self.stderr: it ends each text with a newline, a progress bar does not.
        screen = Screen(self.stdout, sys.stderr, as_json=given["json"])
        try:
            place = place_of(given["backend"] or DEFAULT_TASK_BACKEND_ALIAS)
            code = program.run(Namespace(**given), place, screen)
        except (*program.EXPECTED, ImproperlyConfigured) as error:
            raise CommandError(program.described(error)) from error
        if code != exit_codes.OK:
            sys.exit(code)


def _declare_backend(parser: ArgumentParser, default: object) -> None:
    parser.add_argument(
        "--backend",
        default=default,
        metavar="ALIAS",
        help="The backend, by its alias in TASKS. Default: "
        f"{DEFAULT_TASK_BACKEND_ALIAS}.",
    )
