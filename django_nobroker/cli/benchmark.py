"""The command ``bench``."""

from __future__ import annotations

import shutil
import tempfile
from argparse import ArgumentParser
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from django_nobroker.engine.errors import storage_error

from . import exit_codes, values
from .command import Call, Command
from .measuring import Measured, rows
from .moments import span
from .table import Column

_ROWS = 9


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--seconds",
        type=values.seconds_above_zero,
        default=1.5,
        metavar="S",
        help="How long each row is measured. Default: 1.5, so that all take less than "
        "25 seconds.",
    )


def _run(call: Call) -> int:
    store = Path(call.place.directory).absolute()
    try:
        scratch = tempfile.mkdtemp(prefix=f".{store.name}.bench-", dir=store.parent)
    except OSError as error:
        raise storage_error(
            error, "No directory could be made beside the store"
        ) from error
    try:
        measured = _measured(call, Path(scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _tell(call, measured, store.parent)
    return exit_codes.OK


def _measured(call: Call, scratch: Path) -> list[Measured]:
    found: list[Measured] = []
    with (
        call.progress("Measuring") as progress,
        closing(rows(scratch, call.args.seconds)) as steps,
    ):
        progress(0, _ROWS)
        for step in steps:
            found.append(step())
            progress(len(found), _ROWS)
    return found


def _tell(call: Call, measured: list[Measured], parent: Path) -> None:
    raw = measured[0]
    if call.screen.as_json:
        for one in measured:
            call.screen.values({**asdict(one), "ratio": one.ratio(raw)})
        return
    columns = [
        Column("what"),
        Column("jobs", right=True),
        Column("per second", right=True),
        Column("one call", right=True),
        Column("ratio", right=True),
    ]
    call.screen.table(
        columns,
        [
            [
                one.name,
                one.count,
                f"{one.per_second:,.0f}",
                span(one.median_seconds),
                f"{one.ratio(raw):.2f}",
            ]
            for one in measured
        ],
    )
    call.screen.note(
        f"Beside the store, in {parent}. Ratio: to a raw write + fdatasync; "
        "with fsync=False a power cut may lose jobs."
    )


COMMANDS = (
    Command(
        name="bench",
        help="Measure the disk and the queue on it, in a directory beside the store.",
        run=_run,
        arguments=_arguments,
        more="The store itself is left alone, and what was made is removed.",
    ),
)
