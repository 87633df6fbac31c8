"""The commands ``ack`` and ``nack``: an operator ends the attempt of somebody else.

They use the fencing token of the lease as it is now, so a job that was given to somebody
else in between is left alone.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django_nobroker.engine import states
from django_nobroker.engine.errors import NotLeasedError
from django_nobroker.engine.settle import Held
from django_nobroker.plain.job import Job, JobState
from django_nobroker.plain.queue import Queue
from django_nobroker.views import STATES

from . import exit_codes, jobs, values
from .command import Call, Command

_ID_HELP = "The id of a job that is leased now."


def _ack_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help=_ID_HELP)


def _nack_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help=_ID_HELP)
    parser.add_argument(
        "--error",
        default="nacked by an operator",
        metavar="TEXT",
        help="Why. Default: %(default)s.",
    )
    parser.add_argument(
        "--delay",
        type=values.seconds,
        metavar="S",
        help="Due again after so many seconds. Default: the backoff of the queue.",
    )


def _leased(call: Call, queue: Queue[Any]) -> tuple[Queue[Any], Job[Any]]:
    """Return the job as whoever leased it has it, and its queue, which is open."""
    store = queue.opened()
    position, row, name = jobs.find(store, call.args.id, call.queue)
    if row.state != states.LEASED:
        state = STATES[row.state].value
        raise NotLeasedError(f"Job {row.id} is not leased but {state}.")
    own = call.place.open(name)
    job = own.as_job(position, row)
    return own, own.as_it_is(job, row, held=Held(position, row.lease_token))


def _ack(call: Call) -> int:
    with call.place.open(call.queue) as any_queue:
        queue, job = _leased(call, any_queue)
        with queue:
            queue.ack(job)
            return _tell(call, queue, job.id, "is done")


def _nack(call: Call) -> int:
    with call.place.open(call.queue) as any_queue:
        queue, job = _leased(call, any_queue)
        with queue:
            after = queue.nack(job, error=call.args.error, delay=call.args.delay)
            dead = after.state is JobState.DEAD
            used = f"{after.attempts} of {after.max_attempts} attempts used"
            what = "is a dead letter now" if dead else f"is ready again, {used}"
            return _tell(call, queue, job.id, what)


def _tell(call: Call, queue: Queue[Any], job_id: str, what: str) -> int:
    if call.screen.as_json:
        store = queue.opened()
        position, row, _ = jobs.find(store, job_id, queue.name)
        call.screen.values(jobs.shown(store, position, row).to_dict())
    else:
        call.screen.line(f"Job {job_id} {what}.")
    return exit_codes.OK


COMMANDS = (
    Command(
        name="ack",
        help="Finish a job that is leased, whoever holds it.",
        run=_ack,
        arguments=_ack_arguments,
        more="If its worker succeeds as well, nothing changes; if it fails, it is told "
        "that the lease is lost.",
    ),
    Command(
        name="nack",
        help="End the attempt of a job that is leased in failure, whoever holds it.",
        run=_nack,
        arguments=_nack_arguments,
        more="It is retried after the backoff, or dead if that was its last attempt.",
    ),
)
