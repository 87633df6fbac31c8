"""``manage.py runworker``: parses its options and hands them to the worker."""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any

from django.core.management import BaseCommand
from django.core.management.base import CommandParser

from django_nobroker.compat import DEFAULT_TASK_BACKEND_ALIAS
from django_nobroker.limits import name
from django_nobroker.seam import WorkerOptions
from django_nobroker.worker_command import run_worker
from django_nobroker.worker_log import visible_log

_DEFAULTS = WorkerOptions()


class Command(BaseCommand):
    """Runs the jobs of a backend."""

    help = (
        "Run jobs until SIGTERM or SIGINT: then finish what runs and exit 0. "
        "A second signal exits at once with status 1."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--queue",
            action="append",
            type=_name,
            metavar="NAME",
            help="Work on this queue only; may be repeated. Default: all queues.",
        )
        parser.add_argument(
            "--exclude",
            action="append",
            type=_name,
            metavar="NAME",
            help="Leave this queue alone; may be repeated.",
        )
        parser.add_argument(
            "--backend",
            default=DEFAULT_TASK_BACKEND_ALIAS,
            metavar="ALIAS",
            help="The backend, by its alias in TASKS. Default: %(default)s.",
        )
        parser.add_argument(
            "--concurrency",
            type=_count,
            default=_DEFAULTS.concurrency,
            metavar="N",
            help="How many jobs run at a time, in threads. Default: %(default)s.",
        )
        parser.add_argument(
            "--max-jobs",
            type=_count,
            metavar="N",
            help="Stop after this many jobs.",
        )
        parser.add_argument(
            "--idle-timeout",
            type=_seconds,
            metavar="S",
            help="Stop when there was nothing to do for so many seconds. A job that "
            "waits for its retry is work, one that was enqueued for later is not.",
        )
        parser.add_argument(
            "--batch",
            action="store_true",
            help="Run what is due, then stop; retries that are not due are left.",
        )
        parser.add_argument(
            "--grace",
            type=_seconds,
            metavar="S",
            help="After the first signal, give running jobs so many seconds, then "
            "give them back. Default: wait for them.",
        )
        parser.add_argument(
            "--poll-interval",
            type=_seconds_above_zero,
            default=_DEFAULTS.poll_interval,
            metavar="S",
            help="Look for jobs so often even if nothing rang. Default: %(default)s.",
        )
        parser.add_argument(
            "--worker-id",
            type=_name,
            metavar="ID",
            help="The name of this worker in results and logs. Default: made up.",
        )

    def handle(self, *_args: Any, **given: Any) -> None:
        """Run the worker."""
        options = WorkerOptions(
            queues=tuple(given["queue"] or ()),
            exclude=tuple(given["exclude"] or ()),
            concurrency=given["concurrency"],
            grace=given["grace"],
            poll_interval=given["poll_interval"],
            max_jobs=given["max_jobs"],
            idle_timeout=given["idle_timeout"],
            batch=given["batch"],
            worker_id=given["worker_id"] or "",
        )
        with visible_log(self.stdout, given["verbosity"]):
            run_worker(given["backend"], options)


def _parsed(
    convert: Callable[[str], Any], fits: Callable[[Any], bool], wanted: str
) -> Any:
    def parse(text: str) -> Any:
        try:
            value = convert(text)
        except ValueError:
            value = None
        if value is None or not fits(value):
            raise ArgumentTypeError(f"must be {wanted}, not {text!r}")
        return value

    return parse


_count = _parsed(int, lambda n: n >= 1, "a whole number of at least 1")
_seconds = _parsed(
    float, lambda s: math.isfinite(s) and s >= 0, "a number of seconds, at least 0"
)
_seconds_above_zero = _parsed(
    float, lambda s: math.isfinite(s) and s > 0, "a number of seconds above 0"
)


def _name(text: str) -> str:
    try:
        return name(text, "it")
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error
