"""One run of the command line, from its arguments to an exit code."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import suppress

from django_nobroker import __version__
from django_nobroker.engine.errors import NobrokerError

from . import exit_codes, grammar
from .command import Call
from .place import Place, plain_place
from .refusal import Refusal
from .screen import Screen

_DIRECTORY = "NOBROKER_DIR"
#: What a command raises when it cannot do what it was asked. Anything else is a fault
#: of this program, and its traceback is wanted.
EXPECTED = (Refusal, NobrokerError, OSError, ValueError)


def main(arguments: Sequence[str] | None = None, *, program: str = "nobroker") -> int:
    """Be the console script; return the exit code. ``program`` is how it is called."""
    parser = ArgumentParser(
        prog=program,
        description="A durable job queue in a directory: look at it, work on it, mend it.",
    )
    parser.add_argument(
        "--version", action="version", version=f"nobroker {__version__}"
    )
    grammar.declare(parser, _declare_directory)
    try:
        args = parser.parse_args(arguments)
    except SystemExit as end:
        # Help and version end with 0, a wrong command line with 2.
        return end.code if isinstance(end.code, int) else exit_codes.USAGE
    if args.subcommand is None:
        parser.print_help(sys.stderr)
        return exit_codes.USAGE
    for stream in (sys.stdout, sys.stderr):
        # No text is worth a failure, whatever this terminal can show.
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")
    directory = args.dir or os.environ.get(_DIRECTORY) or "./jobs"
    screen = Screen(sys.stdout, sys.stderr, as_json=args.json)
    try:
        return run(args, plain_place(directory), screen)
    except EXPECTED as error:
        screen.note(f"{parser.prog}: {described(error)}")
        return exit_codes.ERROR


def run(args: Namespace, place: Place, screen: Screen) -> int:
    """Run the subcommand of parsed arguments; raises one of ``EXPECTED``.

    Ctrl-C is an exit code, and so is a reader that has read enough.
    """
    command = grammar.COMMANDS[args.subcommand]
    try:
        code = command.run(Call(args=args, place=place, screen=screen))
        screen.flush()
    except BrokenPipeError:
        _forget_output()
        return exit_codes.OK
    except KeyboardInterrupt:
        with suppress(OSError):
            screen.flush()
        return exit_codes.INTERRUPTED
    return code


def described(error: BaseException) -> str:
    """Return what went wrong in one line."""
    if isinstance(error, OSError) and error.strerror:
        place = "" if error.filename is None else f": {error.filename}"
        return f"{error.strerror}{place}"
    return " ".join(str(error).split()) or type(error).__name__


def _forget_output() -> None:
    """Let what could not be written go, or the interpreter fails on it at its end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _declare_directory(parser: ArgumentParser, default: object) -> None:
    parser.add_argument(
        "-d",
        "--dir",
        default=default,
        metavar="DIRECTORY",
        help=f"The store. Default: ${_DIRECTORY}, else ./jobs.",
    )
