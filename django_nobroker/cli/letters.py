"""The command ``dlq``."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Sequence
from itertools import islice

from django_nobroker.plain.job import JobState

from . import exit_codes, jobs, payloads, values
from .command import Call, Command
from .jobs import Shown
from .moments import counted, when
from .refusal import Refusal
from .table import Column

_ALL = object()


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--requeue",
        nargs="?",
        const=_ALL,
        metavar="ID",
        help="Make this dead job ready again, or all of them without an id.",
    )
    parser.add_argument(
        "--limit",
        type=values.count,
        default=50,
        metavar="N",
        help="List so many at most. Default: 50.",
    )


def _run(call: Call) -> int:
    if call.args.requeue is not None:
        return _requeue(call)
    with call.place.look(call.queue) as queue:
        walk = jobs.walk(queue.opened(), state=JobState.DEAD.value, queue=call.queue)
        found = list(islice(walk, call.args.limit + 1))
    page = found[: call.args.limit]
    if call.screen.as_json:
        for one in page:
            call.screen.values(one.to_dict())
        return exit_codes.OK
    if not page:
        call.screen.line("No dead letters.")
        return exit_codes.OK
    _table(call, page)
    if len(found) > call.args.limit:
        call.screen.note(
            f"There are more: see `{call.commands.verb('list --state dead --after ID')}`."
        )
    return exit_codes.OK


def _table(call: Call, page: Sequence[Shown]) -> None:
    now = time.time()
    columns = [
        Column("id"),
        Column("queue", cut=True),
        Column("attempts", right=True),
        Column("died"),
        Column("error", cut=True),
        Column("payload", cut=True),
    ]
    rows = [
        [
            one.view.id,
            one.view.queue,
            one.view.attempts,
            when(one.view.finished_at or now, now),
            one.last_error or one.view.reason,
            payloads.shown(one.text),
        ]
        for one in page
    ]
    call.screen.table(columns, rows)


def _requeue(call: Call) -> int:
    wanted = None if call.args.requeue is _ALL else call.args.requeue
    with call.place.open(call.queue) as queue:
        store = queue.opened()
        if wanted is not None:
            position, row, name = jobs.find(store, wanted, call.queue)
            state = jobs.shown(store, position, row).view.state
            if state.value != JobState.DEAD.value:
                raise Refusal(f"Job {wanted} is not dead but {state.value}.")
            names = [name]
        else:
            names = [call.queue] if call.queue else jobs.queue_names(store)
        moved = 0
        for name in names:
            with call.place.open(name) as one:
                moved += one.requeue_dead(wanted)
    if call.screen.as_json:
        call.screen.values({"requeued": moved})
    else:
        call.screen.line(f"Requeued {counted(moved, 'job')}.")
    return exit_codes.OK


COMMANDS = (
    Command(
        name="dlq",
        help="List the dead letters, or bring them back with --requeue.",
        run=_run,
        arguments=_arguments,
        more="Of all queues, or of the one that -q names. Requeued jobs start with "
        "all their attempts before them.",
    ),
)
