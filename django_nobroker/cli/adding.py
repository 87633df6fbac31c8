"""The command ``enqueue``."""

from __future__ import annotations

from argparse import ArgumentParser

from . import exit_codes, jobs, payloads, values
from .command import Call, Command
from .refusal import Refusal


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "payload",
        type=values.value,
        metavar="JSON",
        help="The payload: JSON, or any other text, which is then a string.",
    )
    parser.add_argument(
        "--priority",
        type=values.priority,
        default=0,
        metavar="N",
        help="Higher comes first. Default: 0.",
    )
    parser.add_argument(
        "--delay",
        type=values.seconds,
        default=0.0,
        metavar="S",
        help="Not due before so many seconds.",
    )
    parser.add_argument(
        "--max-attempts",
        type=values.count,
        metavar="N",
        help="Deliveries before the dead letters. Default: the queue's.",
    )
    parser.add_argument(
        "--id",
        type=values.name,
        metavar="ID",
        help="The job's id; a second job of that id is not added.",
    )
    parser.add_argument(
        "--count",
        type=values.count,
        default=1,
        metavar="N",
        help="Add so many of them, all or none. Default: 1.",
    )
    payloads.declare_serializer(parser)


def _run(call: Call) -> int:
    args = call.args
    if args.id is not None and args.count > 1:
        raise Refusal("Several jobs cannot have one id: give --id or --count.")
    if remark := call.place.remark(args.payload):
        call.screen.note(remark)
    with call.place.make(call.queue, payloads.serializer(args.serializer)) as queue:
        made = queue.enqueue_many(
            [args.payload] * args.count,
            priority=args.priority,
            delay=args.delay,
            max_attempts=args.max_attempts,
            job_ids=None if args.id is None else [args.id],
            block=False,
        )
        if call.screen.as_json:
            for job in made:
                call.screen.values(jobs.job_values(job))
        else:
            for job in made:
                call.screen.line(job.id)
    if not made[0].created:
        other = " with another payload" if made[0].conflict else ""
        call.screen.note(
            f"A job {args.id} was there already{other}; nothing was added."
        )
    return exit_codes.OK


COMMANDS = (
    Command(
        name="enqueue",
        help="Add a job; it is on disk when its id is printed.",
        run=_run,
        arguments=_arguments,
        more="The store is made if it is missing.",
    ),
)
