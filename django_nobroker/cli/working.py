"""The command ``work``: a worker whose handler is a function of the user's."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django_nobroker import exception_text
from django_nobroker.plain.job import Job
from django_nobroker.plain.worker import Worker
from django_nobroker.stop_signals import StopSignals
from django_nobroker.worker_log import visible_log

from . import exit_codes, payloads, values
from .command import Call, Command
from .moments import counted
from .refusal import Refusal
from .screen import Screen

Handler = Callable[[Job[Any]], object]


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "handler",
        type=values.function,
        metavar="MODULE:FUNCTION",
        help="Called with each job; the module may be in the current directory.",
    )
    parser.add_argument(
        "-c",
        "--concurrency",
        type=values.count,
        default=1,
        metavar="N",
        help="How many jobs run at a time, in threads. Default: 1.",
    )
    parser.add_argument(
        "--max-jobs", type=values.count, metavar="N", help="Stop after so many jobs."
    )
    parser.add_argument(
        "--idle-timeout",
        type=values.seconds,
        metavar="S",
        help="Stop when there was nothing to do for so many seconds.",
    )
    parser.add_argument(
        "--poll-interval",
        type=values.seconds_above_zero,
        default=0.1,
        metavar="S",
        help="Look for jobs so often even if nothing rang. Default: 0.1.",
    )
    payloads.declare_serializer(parser)


class _Stop(threading.Event):
    """Passes a signal's request on to the worker."""

    def __init__(self, worker: Worker[Any]) -> None:
        super().__init__()
        self._worker = worker

    def set(self) -> None:
        """Let running jobs finish, and lease no other."""
        super().set()
        self._worker.stop()


def _run(call: Call) -> int:
    args = call.args
    handler = _imported(*args.handler)
    if not call.place.is_there():
        call.screen.note(f"A new store is made in {call.place.directory}.")
    with call.place.make(call.queue, payloads.serializer(args.serializer)) as queue:
        worker = Worker(
            queue,
            _telling(handler, call.screen),
            concurrency=args.concurrency,
            poll_interval=args.poll_interval,
            max_jobs=args.max_jobs,
            idle_timeout=args.idle_timeout,
            handle_signals=False,
        )
        with visible_log(call.screen.notes, 1), StopSignals(_Stop(worker)):
            call.screen.note(
                f"Working on {queue.name} in {call.place.directory} with "
                f"{counted(args.concurrency, 'thread')}; Ctrl-C stops."
            )
            stats = worker.run()
    if call.screen.as_json:
        call.screen.values(asdict(stats))
    else:
        parts = [
            f"{number} {name.replace('_', ' ')}"
            for name, number in asdict(stats).items()
        ]
        call.screen.line(", ".join(parts))
    return exit_codes.OK


def _imported(module: str, path: str) -> Handler:
    """Import the handler; the current directory comes first, as in ``python -m``."""
    here = os.getcwd()  # noqa: PTH109 - an entry of sys.path is a string
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except Exception as error:
        text = f"{type(error).__name__}: {exception_text.message(error)}"
        raise Refusal(f"{module}:{path} cannot be imported: {text}") from error
    if not callable(found):
        raise Refusal(
            f"{module}:{path} is not a function but a {type(found).__name__}."
        )
    handler: Handler = found
    return handler


def _telling(handler: Handler, screen: Screen) -> Handler:
    """Return a handler that tells of each failure; the worker decides what follows."""

    def handle(job: Job[Any]) -> object:
        try:
            return handler(job)
        except BaseException as error:
            text = f"{type(error).__name__}: {exception_text.message(error)}"
            screen.note(
                f"Job {job.id} failed, attempt {job.attempts} of {job.max_attempts}: {text}"
            )
            raise

    return handle


COMMANDS = (
    Command(
        name="work",
        help="Run a worker that calls a function with each job of the queue.",
        run=_run,
        arguments=_arguments,
        more="Returning acknowledges the job, raising is a failed attempt. The first "
        "SIGINT or SIGTERM lets running jobs finish, the second one exits at once.",
    ),
)
