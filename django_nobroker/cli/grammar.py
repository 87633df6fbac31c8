"""What may be said on the command line: the subcommands and the options of all of them."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable

from . import (
    adding,
    benchmark,
    checking,
    inspecting,
    keeping,
    letters,
    looking,
    settling,
    shrinking,
    values,
    working,
)
from .command import Command

COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        *adding.COMMANDS,
        *looking.COMMANDS,
        *working.COMMANDS,
        *letters.COMMANDS,
        *settling.COMMANDS,
        *inspecting.COMMANDS,
        *keeping.COMMANDS,
        *checking.COMMANDS,
        *shrinking.COMMANDS,
        *benchmark.COMMANDS,
    )
}

#: Declares the option that says which store; with a default, or without.
Where = Callable[[ArgumentParser, object], None]


def declare(parser: ArgumentParser, where: Where) -> None:
    """Declare everything; ``subcommand`` is None if none is given.

    The options of all subcommands may stand before the subcommand or after it.
    """
    where(parser, None)
    _declare_common(parser, queue=None, as_json=False)
    subparsers = parser.add_subparsers(
        dest="subcommand", metavar="COMMAND", title="commands"
    )
    for command in COMMANDS.values():
        one = subparsers.add_parser(
            command.name,
            help=command.help,
            description=f"{command.help} {command.more}".rstrip(),
        )
        command.arguments(one)
        # Without a default, so that what was said before the subcommand stays.
        where(one, SUPPRESS)
        _declare_common(one, queue=SUPPRESS, as_json=SUPPRESS)


def _declare_common(parser: ArgumentParser, *, queue: object, as_json: object) -> None:
    parser.add_argument(
        "-q",
        "--queue",
        type=values.name,
        default=queue,
        metavar="NAME",
        help="The queue, by its name.",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        default=as_json,
        help="Answer in JSON, one object a line.",
    )
