"""``manage.py demo``: the tour, from the command line."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from demo.failure import DemoError
from demo.story import run

INTERRUPTED = 130  # the exit status that shells know


class Command(BaseCommand):
    """Plays the demo; exit status 0 if all was as it should be, else 1."""

    help = (
        "Starts a web server and a worker in a fresh folder, uses the site over HTTP, "
        "breaks some things, mends them, and checks that no job was lost."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--keep",
            action="store_true",
            help="leave the site and the worker running until Ctrl-C",
        )
        parser.add_argument(
            "--port", type=int, help="of the site; default: one that is free"
        )

    def handle(self, **options: Any) -> None:
        """Play it."""
        try:
            # Not self.stdout, which ends every line: some are written in two parts.
            run(sys.stdout, keep=options["keep"], port=options["port"])
        except KeyboardInterrupt:
            self.stderr.write("\nStopped.")
            sys.exit(INTERRUPTED)
        except DemoError as error:
            raise CommandError(f"The demo failed: {error}") from None
