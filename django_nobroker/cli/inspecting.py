"""The command ``inspect``: the raw log, record by record."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import Any

import msgspec

from django_nobroker.engine import framing
from django_nobroker.engine.record import Unknown

from . import exit_codes, values
from .command import Call, Command
from .log_entries import UNFINISHED, Entry, LogEntries, OfJob
from .moments import moment
from .screen import Screen

_PAUSE = 0.2  # seconds between two looks at a log that is followed
#: Fields of a record that have a place of their own, or only hold the log together.
_FRAME = ("op", "at", "d", "left", "of", "t")


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--limit",
        type=values.count,
        metavar="N",
        help="The last N records; with --from the first N from there. Default: all.",
    )
    parser.add_argument(
        "--from",
        dest="start",
        type=values.position,
        metavar="POSITION",
        help="Begin at this position.",
    )
    parser.add_argument(
        "--job", metavar="ID", help="Only the records of the job of this id."
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="Go on with what is written from now on, until Ctrl-C.",
    )


def _run(call: Call) -> int:
    call.place.require()
    args = call.args
    with closing(LogEntries(call.place.directory)) as entries:
        end = entries.end
        is_wanted = OfJob(args.job) if args.job else lambda _entry: True
        for entry in _chosen(entries, args, end, is_wanted):
            if entry.why == UNFINISHED and args.follow:
                end = entry.start  # it may be finished the next time
                break
            _write(call.screen, entry)
        if args.follow and not (args.limit and args.start is not None):
            _follow(call.screen, entries, end, is_wanted)
    return exit_codes.OK


def _chosen(
    entries: LogEntries, args: Any, end: int, is_wanted: Any
) -> Iterable[Entry]:
    if args.limit is not None and args.start is None and not args.job:
        return entries.last(args.limit, end)
    start = entries.first if args.start is None else args.start
    found: Iterator[Entry] = filter(is_wanted, entries.between(start, end))
    if args.limit is None:
        return found
    if args.start is None:
        return deque(found, maxlen=args.limit)
    return islice(found, args.limit)


def _follow(screen: Screen, entries: LogEntries, position: int, is_wanted: Any) -> None:
    while True:
        screen.flush()
        time.sleep(_PAUSE)
        for entry in entries.between(position, entries.end):
            if entry.why == UNFINISHED:
                break
            position = entry.end
            if is_wanted(entry):
                _write(screen, entry)


def _write(screen: Screen, entry: Entry) -> None:
    fields = _fields(entry)
    if screen.as_json:
        screen.values(
            {"position": entry.start, "bytes": entry.end - entry.start, **fields}
        )
        return
    if entry.record is None:
        screen.alarm(
            f"{entry.start:>10}  {entry.why}: {entry.end - entry.start} bytes, no record"
        )
        return
    rest = {name: value for name, value in fields.items() if name not in _FRAME}
    written = moment(fields.get("t"))
    text = json.dumps(rest, ensure_ascii=False)
    screen.cut_line(f"{entry.start:>10}  {written:<19}  {fields['op']:<8}  {text}")


def _fields(entry: Entry) -> dict[str, Any]:
    if entry.record is None:
        return {"op": None, "why": entry.why}
    if isinstance(entry.record, Unknown):
        body = entry.line[framing.HEADER :]
    else:
        body = msgspec.json.encode(entry.record)
    try:
        fields: dict[str, Any] = json.loads(body)
    except (ValueError, RecursionError) as error:
        # The frame is sound and the record is whole, only too deep or too long to show.
        return {"op": type(entry.record).__name__.lower(), "why": str(error)}
    return fields


COMMANDS = (
    Command(
        name="inspect",
        help="Show the raw log: every record with its position.",
        run=_run,
        arguments=_arguments,
        more="It reads the segments and nothing else, so it works on a damaged log, too.",
    ),
)
