"""From what an engine knows of a job to Django's ``TaskResult``, and nothing else.

Queued, delayed and waiting for a retry is READY, leased RUNNING, done SUCCESSFUL,
dead or discarded FAILED. ``worker_ids`` has one entry per attempt and ``errors`` one
per failed attempt, oldest first; an attempt that was given back is in neither.
"""

from __future__ import annotations

import uuid
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar

from . import conf, seam
from .arguments import TaskCall, load_result
from .compat import AnyResult, Task, TaskError, TaskResult, TaskResultStatus
from .control import Discarded, WorkerLost
from .exceptions import NobrokerError

P = ParamSpec("P")
R = TypeVar("R")

_STATUS = {
    seam.State.READY: TaskResultStatus.READY,
    seam.State.LEASED: TaskResultStatus.RUNNING,
    seam.State.DONE: TaskResultStatus.SUCCESSFUL,
    seam.State.DEAD: TaskResultStatus.FAILED,
    seam.State.DISCARDED: TaskResultStatus.FAILED,
}


def new_id() -> str:
    """Return a fresh id, for a result that exists before its job does."""
    return uuid.uuid4().hex


def path_of(kind: type[BaseException]) -> str:
    """Return the dotted path of an exception class, as errors name it."""
    return f"{kind.__module__}.{kind.__qualname__}"


def moment(seconds: float | None) -> datetime | None:
    """Return seconds since the epoch as Django's kind of time, aware or not."""
    if seconds is None:
        return None
    if conf.uses_time_zones():
        return datetime.fromtimestamp(seconds, tz=UTC)
    return datetime.fromtimestamp(seconds)  # noqa: DTZ006 - USE_TZ is off.


def change(frozen: object, **values: Any) -> None:
    """Set fields of a frozen dataclass: results are brought up to date in place."""
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


def task_of_job(task: Task[P, R], alias: str, **values: Any) -> Task[P, R]:
    """Return a copy of ``task`` as it was when a job of it was enqueued.

    The copy is not validated again: that a queue was removed from the settings must
    not make the jobs that went through it unreadable.
    """
    copy = object.__new__(type(task))
    for option in fields(task):
        object.__setattr__(copy, option.name, getattr(task, option.name))
    change(copy, backend=alias, **values)
    return copy


def promised(
    task: Task[P, R],
    result_id: str,
    args: list[Any],
    kwargs: dict[str, Any],
    *,
    enqueued_at: float | None = None,
) -> TaskResult[P, R]:
    """Return the result of a job that is queued, or will be after the commit."""
    return TaskResult(
        task=task,
        id=result_id,
        status=TaskResultStatus.READY,
        enqueued_at=moment(enqueued_at),
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=args,
        kwargs=kwargs,
        backend=task.backend,
        errors=[],
        worker_ids=[],
    )


def from_job(
    detail: seam.JobDetail, task: Task[P, R], call: TaskCall, alias: str
) -> TaskResult[P, R]:
    """Return the result of a job as its records tell it; ``task`` is the deployed one."""
    job = detail.job
    # After the first attempt the time is that of the retry, not what was asked for.
    delayed = job.attempts == 0 and job.available_at > job.enqueued_at
    result = promised(
        task_of_job(
            task,
            alias,
            priority=job.priority,
            queue_name=job.queue,
            run_after=moment(job.available_at) if delayed else None,
        ),
        job.id,
        call.args,
        call.kwargs,
        enqueued_at=job.enqueued_at,
    )
    counted = [attempt for attempt in detail.history if attempt.outcome != "released"]
    change(
        result,
        status=_STATUS[job.state],
        started_at=moment(job.started_at),
        last_attempted_at=moment(job.last_attempted_at),
        finished_at=moment(job.finished_at),
        worker_ids=[attempt.worker for attempt in counted],
        errors=[error for attempt in counted if (error := _error(attempt))],
    )
    if job.state is seam.State.DISCARDED:
        result.errors.append(
            TaskError(
                exception_class_path=path_of(Discarded),
                traceback=f"The job was discarded: {job.reason or 'no reason given'}.\n",
            )
        )
    if job.state is seam.State.DONE:
        change(result, _return_value=load_result(detail.result))
    return result


def task_error(error: seam.Error) -> TaskError:
    """Return an attempt's error as results carry it.

    Where the engine itself gave up on an attempt it names no class that could be
    imported, as ``TaskError.exception_class`` does.
    """
    path = error.type if "." in error.type else path_of(NobrokerError)
    return TaskError(
        exception_class_path=path, traceback=error.traceback or error.message
    )


def _error(attempt: seam.AttemptView) -> TaskError | None:
    if attempt.outcome == "lost":
        text = attempt.error.message if attempt.error else "lease expired: worker lost"
        return TaskError(exception_class_path=path_of(WorkerLost), traceback=text)
    return None if attempt.error is None else task_error(attempt.error)


def start(result: AnyResult, attempt: seam.Attempt, now: float) -> None:
    """Bring ``result`` to the beginning of ``attempt``."""
    # A result that was read from the log says that it runs, and lists the attempt.
    if result.status is TaskResultStatus.RUNNING:
        return
    began = moment(now)
    change(
        result,
        status=TaskResultStatus.RUNNING,
        started_at=result.started_at or began,
        last_attempted_at=began,
    )
    result.worker_ids.append(attempt.worker)


def settle(result: AnyResult, settled: seam.Settled, now: float) -> None:
    """Bring ``result`` to what became of its attempt."""
    outcome = settled.outcome
    if not isinstance(outcome, seam.Done):
        result.errors.append(task_error(outcome.error))
    elif settled.state is seam.State.DONE:
        change(result, _return_value=load_result(outcome.result))
    if settled.state is not None:
        change(result, status=_STATUS[settled.state])
    if result.is_finished:
        change(result, finished_at=moment(now))
