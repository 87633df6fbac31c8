"""The commands ``stats``, ``list`` and ``show``."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict
from itertools import islice

from django_nobroker.engine import history
from django_nobroker.plain.inspecting import QueueStats
from django_nobroker.seam import AttemptView, State
from django_nobroker.views import attempts

from . import exit_codes, jobs, payloads, values
from .command import Call, Command
from .jobs import Shown
from .moments import moment, span, when
from .place import DEFAULT_QUEUE
from .table import Column

_COUNTS = tuple(QueueStats.__dataclass_fields__)


def _stats(call: Call) -> int:
    rows: list[tuple[str, QueueStats]] = []
    with call.place.look(call.queue) as queue:
        if call.queue is not None:
            names = [call.queue]
        else:
            names = jobs.queue_names(queue.opened()) or [DEFAULT_QUEUE]
        for name in names:
            with call.place.look(name) as one:
                rows.append((name, one.stats()))
    if call.queue is None:
        # What once had jobs and has none now is of no interest, unless it is all.
        rows = [row for row in rows if row[1].total] or rows[:1]
    if call.screen.as_json:
        for name, counts in rows:
            call.screen.values({**asdict(counts), "queue": name})
        return exit_codes.OK
    columns = [Column("queue"), *(Column(name, right=True) for name in _COUNTS)]
    call.screen.table(
        columns, [[name, *asdict(counts).values()] for name, counts in rows]
    )
    return exit_codes.OK


def _list_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--state", choices=jobs.STATE_NAMES, help="Only jobs in this state."
    )
    parser.add_argument(
        "--limit",
        type=values.count,
        default=50,
        metavar="N",
        help="So many at most. Default: 50.",
    )
    parser.add_argument(
        "--after",
        metavar="ID",
        help="Go on behind this job: the last one of the page before.",
    )


def _list(call: Call) -> int:
    args = call.args
    with call.place.look(call.queue) as queue:
        store = queue.opened()
        after = None
        if args.after is not None:
            after = jobs.find(store, args.after, call.queue)[0]
        found = list(
            islice(
                jobs.walk(store, state=args.state, queue=call.queue, after=after),
                args.limit + 1,
            )
        )
    page = found[: args.limit]
    if call.screen.as_json:
        for one in page:
            call.screen.values(one.to_dict())
        return exit_codes.OK
    if not page:
        call.screen.line("No jobs.")
        return exit_codes.OK
    _table(call, page)
    if len(found) > args.limit:
        call.screen.note(f"There are more: add --after {page[-1].view.id}")
    return exit_codes.OK


def _table(call: Call, page: list[Shown]) -> None:
    now = time.time()
    columns = [
        Column("id"),
        Column("queue", cut=True),
        Column("state"),
        Column("priority", right=True),
        Column("attempts", right=True),
        Column("due"),
        Column("payload", cut=True),
    ]
    rows = [
        [
            one.view.id,
            one.view.queue,
            one.view.state,
            one.view.priority,
            f"{one.view.attempts}/{one.view.max_attempts}",
            _due(one, now),
            payloads.shown(one.text),
        ]
        for one in page
    ]
    call.screen.table(columns, rows)


def _due(one: Shown, now: float) -> str:
    if one.view.state is not State.READY:
        return "-"
    return "now" if one.view.available_at <= now else when(one.view.available_at, now)


def _show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="The job's id.")


def _show(call: Call) -> int:
    with call.place.look(call.queue) as queue:
        store = queue.opened()
        position, row, _ = jobs.find(store, call.args.id, call.queue)
        one = jobs.shown(store, position, row)
        past = list(attempts(list(history.backwards(store, row))[::-1]))
        result = history.result(store, row)
    if call.screen.as_json:
        view = one.view
        call.screen.values(
            {
                **one.to_dict(),
                "task": view.kind,
                "position": view.position,
                "started_at": view.started_at,
                "last_attempted_at": view.last_attempted_at,
                "finished_at": view.finished_at,
                "reason": view.reason,
                "result": payloads.value(result),
                "history": [asdict(attempt) for attempt in past],
            }
        )
        return exit_codes.OK
    call.screen.facts(_facts(one, result))
    _timeline(call, past)
    return exit_codes.OK


def _facts(one: Shown, result: bytes | None) -> Mapping[str, object]:
    view, now = one.view, time.time()

    def dated(seconds: float | None) -> str:
        return "" if seconds is None else f"{moment(seconds)} ({when(seconds, now)})"

    state = view.state.value
    if view.reason:
        state = f"{state} ({view.reason})"
    elif view.state is State.READY and view.available_at > now:
        state = f"{state}, due {when(view.available_at, now)}"
    return {
        "id": view.id,
        "queue": view.queue,
        "task": view.kind,
        "state": state,
        "priority": view.priority,
        "attempts": f"{view.attempts} of {view.max_attempts}",
        "enqueued": dated(view.enqueued_at),
        "started": dated(view.started_at),
        "finished": dated(view.finished_at),
        "position": view.position,
        "payload": payloads.shown(one.text),
        "result": None if result is None else payloads.shown(result),
        "last error": one.last_error,
    }


def _timeline(call: Call, past: list[AttemptView]) -> None:
    if not past:
        return
    columns = [
        Column("attempt", right=True),
        Column("started"),
        Column("took", right=True),
        Column("outcome"),
        Column("worker", cut=True),
        Column("error", cut=True),
    ]
    call.screen.line()
    call.screen.table(columns, [_attempt(one) for one in past])
    traceback = next((one.error.traceback for one in past[::-1] if one.error), "")
    if traceback:
        call.screen.line()
        call.screen.heading("Traceback of the last error")
        call.screen.lines(traceback.rstrip("\n"))


def _attempt(one: AttemptView) -> list[object]:
    took = (
        ""
        if one.finished_at is None
        else span(max(0.0, one.finished_at - one.started_at))
    )
    error = "" if one.error is None else one.error.message
    if one.error is not None and one.outcome != "lost" and one.error.type:
        error = f"{one.error.type}: {error}"
    return [one.number, moment(one.started_at), took, one.outcome, one.worker, error]


COMMANDS = (
    Command(
        name="stats",
        help="Count the jobs by state.",
        run=_stats,
        more="Of all queues, or of the one that -q names.",
    ),
    Command(
        name="list",
        help="List jobs in the order of their enqueues.",
        run=_list,
        arguments=_list_arguments,
        more="Of all queues, or of the one that -q names.",
    ),
    Command(
        name="show",
        help="Show all about one job: payload, result, each attempt and its error.",
        run=_show,
        arguments=_show_arguments,
    ),
)
