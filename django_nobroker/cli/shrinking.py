"""The commands ``compact`` and ``purge``: letting go of jobs, and of the log."""

from __future__ import annotations

import sys
import threading
from argparse import ArgumentParser
from dataclasses import asdict

from django_nobroker.engine import compaction
from django_nobroker.engine.retention import Retention
from django_nobroker.plain.job import JobState
from django_nobroker.stop_signals import StopSignals

from . import exit_codes, jobs, values
from .command import Call, Command
from .moments import counted, span
from .place import DEFAULT_QUEUE
from .refusal import Refusal


def _compact(call: Call) -> int:
    stop = threading.Event()
    with call.place.open(call.queue) as queue:
        store = queue.opened()
        names = [call.queue] if call.queue else jobs.queue_names(store)
        with StopSignals(stop), call.progress("Compacting") as progress:
            result = compaction.compact(
                store,
                Retention(queues={name: call.place.terms(name) for name in names}),
                timeout=queue.lock_timeout,
                progress=progress,
                stopped=stop.is_set,
            )
    if call.screen.as_json:
        call.screen.values(result.to_dict())
    else:
        call.screen.line(result.describe())
    if stop.is_set():
        call.screen.note("Stopped before its end; what was done stays.")
        return exit_codes.INTERRUPTED
    return exit_codes.OK


def _purge_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        choices=[state.value for state in JobState],
        help="Only jobs in this state. Default: all, leased ones included.",
    )
    parser.add_argument(
        "--older-than",
        type=values.age,
        metavar="AGE",
        help="Only jobs that ended longer ago, or were enqueued longer ago if they have "
        "not ended: seconds, or a number with s, m, h, d or w, such as 7d.",
    )
    parser.add_argument("--yes", action="store_true", help="Do not ask.")


def _purge(call: Call) -> int:
    args = call.args
    name = call.queue or DEFAULT_QUEUE
    if not args.yes:
        call.place.require()
        _confirm(call, name)
    with call.place.open(name) as queue:
        count = queue.purge(args.state, older_than=args.older_than)
    if call.screen.as_json:
        call.screen.values({"purged": count})
    else:
        call.screen.line(f"Purged {counted(count, 'job')}.")
    return exit_codes.OK


def _confirm(call: Call, name: str) -> None:
    """Ask on the terminal; raises :class:`Refusal` unless the answer is yes."""
    if not sys.stdin.isatty():
        raise Refusal("purge asks first, and there is no terminal: add --yes.")
    call.screen.question(f"{_question(call, name)} [y/N]")
    answer = sys.stdin.readline()
    if answer.strip().lower() not in {"y", "yes"}:
        raise Refusal("Nothing was purged.")


def _question(call: Call, name: str) -> str:
    args = call.args
    with call.place.look(name) as queue:
        counts = asdict(queue.stats())
    whole = counts["total"] if args.state is None else counts.get(args.state)
    noun = "jobs" if args.state is None else f"{args.state} jobs"
    if args.older_than is not None:
        chosen = f"the {noun} of {name} that are older than {span(args.older_than)}"
    elif whole is None:
        chosen = f"the {noun} of {name}"
    else:
        chosen = f"all {noun} of {name} ({whole})"
    held = ""
    if args.state is None and counts["leased"]:
        held = f", of which {counts['leased']} may be held by a worker now"
    return f"Purge {chosen} for good{held}?"


COMMANDS = (
    Command(
        name="compact",
        help="Drop finished jobs, and give back what the log needs no more.",
        run=_compact,
        more="Of all queues, or of the one that -q names. Everybody works on meanwhile.",
    ),
    Command(
        name="purge",
        help="Take jobs out of the queue for good; asks first.",
        run=_purge,
        arguments=_purge_arguments,
        more=f"Of the queue {DEFAULT_QUEUE} unless -q names another one. Their ids may "
        "be used again.",
    ),
)
