"""The commands ``recover``, ``backup`` and ``rebuild-index``."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict

from . import exit_codes
from .command import Call, Command
from .moments import counted, moment, size, span
from .table import Column


def _recover(call: Call) -> int:
    with call.place.open(call.queue) as queue:
        report, kept = queue.recovery, queue.set_aside()
        last = queue.diagnostics().last_repair
    if call.screen.as_json:
        call.screen.values(
            {
                **asdict(report),
                "last_repair": None if last is None else asdict(last),
                "kept": [asdict(one) for one in kept],
            }
        )
        return exit_codes.OK
    call.screen.line(f"{report.describe()}.")
    if last is not None:
        call.screen.line(f"The last repair was on {moment(last.at)}.")
    if kept:
        call.screen.line()
        columns = [
            Column("set aside"),
            Column("bytes", right=True),
            Column("kept since"),
            Column("why", cut=True),
        ]
        call.screen.table(
            columns,
            [[one.name, one.size, moment(one.kept_at), one.why] for one in kept],
        )
    return exit_codes.OK


def _backup_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        metavar="DIRECTORY",
        help="Where the copy goes; there must be nothing of that name.",
    )


def _backup(call: Call) -> int:
    with call.place.look(call.queue) as queue, call.progress("Copying") as progress:
        report = queue.backup(call.args.directory, progress=progress)
    if call.screen.as_json:
        call.screen.values(report.to_dict())
    else:
        call.screen.line(
            f"{counted(report.records, 'record')} in {counted(report.segments, 'segment')} "
            f"({size(report.log_bytes)}) copied to {report.directory} and checked, in "
            f"{span(report.seconds)}."
        )
        for one in report.errors:
            call.screen.alarm(f"The origin is damaged, and so is the copy: {one.text}.")
    return exit_codes.OK if report.ok else exit_codes.ERROR


def _rebuild(call: Call) -> int:
    with call.place.look(call.queue) as queue, call.progress("Rebuilding") as progress:
        count = queue.rebuild_index(progress=progress)
    if call.screen.as_json:
        call.screen.values({"jobs": count})
    else:
        call.screen.line(
            f"The index was built anew from the log: {counted(count, 'job')}."
        )
    return exit_codes.OK


COMMANDS = (
    Command(
        name="recover",
        help="Repair what a crash left, and tell what repairs ever took out.",
        run=_recover,
        more="Any command that writes repairs as well; nothing is ever thrown away.",
    ),
    Command(
        name="backup",
        help="Copy the store while it is in use, and check the copy.",
        run=_backup,
        arguments=_backup_arguments,
    ),
    Command(
        name="rebuild-index",
        help="Throw the index away and build it anew from the log.",
        run=_rebuild,
        more="No job is touched. It is never needed in normal use.",
    ),
)
