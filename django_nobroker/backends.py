"""The backend of Django's Tasks API that keeps its jobs in a log.

It validates, serialises and enqueues; running jobs is the worker's business. Nothing
is opened before the first job is enqueued or looked up.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.core.checks import CheckMessage
from django.db import DEFAULT_DB_ALIAS, transaction

from . import arguments, checks, conf, engines, limits, registry, results, seam
from .compat import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from .declaration import Call, NobrokerTask
from .exceptions import JobNotFoundError
from .signals import aannounce, announce
from .task_options import check_name

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(Generic[P, R]):
    """A call that was found fit to be enqueued: nothing more can be wrong with it."""

    task: Task[P, R]
    call: arguments.TaskCall
    payload: bytes
    job_id: str | None


class LogBackend(BaseTaskBackend):
    """``TASKS[alias]["BACKEND"]``; one is made per thread and per asyncio task."""

    task_class = NobrokerTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        if "QUEUES" not in params:
            self.queues = set()  # Django's way to say that any name will do.
        self.configuration = conf.Configuration(alias, params)

    @property
    def engine(self) -> seam.Engine:
        """The engine, one per store and process, made on first use.

        Raises:
            ImproperlyConfigured: if an option is wrong.
        """
        return engines.engine_for(self.configuration.options, alias=self.alias)

    def validate_task(self, task: Task[..., Any]) -> None:
        """Refuse what could not be run or written, at declaration and at enqueue.

        Raises:
            InvalidTask: with what is wrong.
        """
        super().validate_task(task)
        check_name(task.queue_name, "queue_name")

    def enqueue(
        self, task: Task[P, R], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TaskResult[P, R]:
        """Enqueue one job; it is on disk when this returns.

        With ``ENQUEUE_ON_COMMIT`` it is :meth:`enqueue_on_commit`.

        Raises:
            InvalidTask: if the task or its options are wrong.
            SerializationError: if the arguments cannot make a JSON round trip.
            QueueFull, StorageError: if the store refuses; nothing was enqueued.
        """
        return self._dispatch([self._prepare(task, args, kwargs)])[0]

    async def aenqueue(
        self, task: Task[P, R], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TaskResult[P, R]:
        """See :meth:`enqueue`; the event loop does not wait for the disk."""
        if self.configuration.options.enqueue_on_commit:
            # A transaction belongs to the thread that Django's ORM runs in.
            return await sync_to_async(self.enqueue)(task, args, kwargs)
        prepared = self._prepare(task, args, kwargs)
        # In threads of their own: those that wait for the disk together are
        # written and synced together.
        write = sync_to_async(self._write, thread_sensitive=False)
        ((result, created),) = await write([prepared])
        if created:
            await aannounce(task_enqueued, self, task_result=result)
        return result

    def enqueue_many(
        self, task: Task[P, R], calls: Sequence[Call]
    ) -> list[TaskResult[P, R]]:
        """Enqueue one job per pair of ``(args, kwargs)``: all of them, or none."""
        return self._dispatch([self._prepare(task, *call) for call in calls])

    def enqueue_on_commit(
        self, task: Task[P, R], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TaskResult[P, R]:
        """Enqueue when the current transaction commits; at once if there is none.

        The result has its final id, and no ``enqueued_at`` before the commit.
        """
        database = _database(self.configuration.options) or DEFAULT_DB_ALIAS
        return self._on_commit([self._prepare(task, args, kwargs)], database)[0]

    def get_result(self, result_id: str) -> TaskResult[..., Any]:
        """Return the result of the job with this id.

        Raises:
            TaskResultDoesNotExist: if there is none, or not of a Django task.
            InvalidTask: if its task does not exist in the code any more.
        """
        try:
            detail = self.engine.job(limits.name(result_id, "result_id"))
            call = arguments.load_call(detail.payload)
        except (JobNotFoundError, TypeError, ValueError) as error:
            raise TaskResultDoesNotExist(result_id) from error
        try:
            task = registry.resolve(call.path)
        except registry.UnknownTaskError as error:
            raise InvalidTask(f"Job {result_id}: {error}") from error
        return results.from_job(detail, task, call, self.alias)

    async def aget_result(self, result_id: str) -> TaskResult[..., Any]:
        """See :meth:`get_result`."""
        return await sync_to_async(self.get_result, thread_sensitive=False)(result_id)

    def check(self, **_kwargs: Any) -> list[CheckMessage]:
        """Return what is wrong with the settings; opens nothing."""
        return list(checks.check_backend(self))

    def _prepare(
        self, task: Task[P, R], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Prepared[P, R]:
        self.validate_task(task)
        registry.check_reachable(task)
        payload, call = arguments.round_trip(task.module_path, args, kwargs)
        return Prepared(
            task=task,
            call=call,
            payload=payload,
            job_id=task.job_id if isinstance(task, NobrokerTask) else None,
        )

    def _dispatch(self, prepared: list[Prepared[P, R]]) -> list[TaskResult[P, R]]:
        if database := _database(self.configuration.options):
            return self._on_commit(prepared, database)
        return self._submit(prepared)

    def _on_commit(
        self, prepared: list[Prepared[P, R]], database: str
    ) -> list[TaskResult[P, R]]:
        connection = transaction.get_connection(database)
        is_manual = connection.connection is not None and not connection.autocommit
        if not connection.in_atomic_block and not is_manual:
            return self._submit(prepared)
        named = [
            replace(one, job_id=one.job_id or results.new_id()) for one in prepared
        ]
        # Not robust: a job that could not be written must not be lost in silence.
        transaction.on_commit(lambda: self._submit(named), using=database)
        return [
            results.promised(
                self._as_enqueued(one.task),
                str(one.job_id),
                one.call.args,
                one.call.kwargs,
            )
            for one in named
        ]

    def _submit(self, prepared: list[Prepared[P, R]]) -> list[TaskResult[P, R]]:
        written = self._write(prepared)
        for result, created in written:
            if created:
                announce(task_enqueued, self, task_result=result)
        return [result for result, _ in written]

    def _write(
        self, prepared: list[Prepared[P, R]]
    ) -> list[tuple[TaskResult[P, R], bool]]:
        options = self.configuration.options
        jobs = [_new_job(one, options) for one in prepared]
        return [
            (
                self._enqueued(one, job, answer)
                if answer.created
                else self._existing(one, answer),
                answer.created,
            )
            for one, job, answer in zip(
                prepared, jobs, self.engine.enqueue_many(jobs), strict=True
            )
        ]

    def _enqueued(
        self, one: Prepared[P, R], job: seam.NewJob, answer: seam.Enqueued
    ) -> TaskResult[P, R]:
        due = results.moment(job.run_at)
        return results.promised(
            self._as_enqueued(one.task, run_after=due),
            answer.id,
            one.call.args,
            one.call.kwargs,
            enqueued_at=answer.enqueued_at,
        )

    def _as_enqueued(self, task: Task[P, R], **values: Any) -> Task[P, R]:
        # Mostly the task is as its job will have it, and no copy is needed.
        values = {name: v for name, v in values.items() if getattr(task, name) != v}
        if not values and task.backend == self.alias:
            return task
        return results.task_of_job(task, self.alias, **values)

    def _existing(self, one: Prepared[P, R], answer: seam.Enqueued) -> TaskResult[P, R]:
        """Return the result of the job that has the id already."""
        path = one.task.module_path
        try:
            detail = self.engine.job(answer.id)
        except JobNotFoundError:
            # Finished so long ago that only its id is remembered.
            result = results.promised(
                self._as_enqueued(one.task),
                answer.id,
                one.call.args,
                one.call.kwargs,
                enqueued_at=answer.enqueued_at,
            )
            results.change(result, status=TaskResultStatus.SUCCESSFUL)
            return result
        if detail.job.kind != path:
            raise InvalidTask(
                f"job_id {answer.id!r} is that of a job of {detail.job.kind}, "
                f"so {path} was not enqueued."
            )
        call = arguments.load_call(detail.payload)
        return results.from_job(detail, one.task, call, self.alias)


def log_backends() -> dict[str, LogBackend]:
    """Return the log backends of the settings, by alias."""
    return {
        backend.alias: backend
        for backend in task_backends.all()
        if isinstance(backend, LogBackend)
    }


def _database(options: conf.Options) -> str | None:
    """Return the alias of the database whose commit ``enqueue()`` waits for."""
    given = options.enqueue_on_commit
    return (DEFAULT_DB_ALIAS if given else None) if isinstance(given, bool) else given


def _new_job(one: Prepared[P, R], options: conf.Options) -> seam.NewJob:
    task = one.task
    own = task if isinstance(task, NobrokerTask) else None
    return seam.NewJob(
        queue=task.queue_name,
        payload=one.payload,
        kind=one.call.path,
        priority=int(task.priority),
        run_at=_run_at(task, own),
        max_attempts=(
            own.max_attempts
            if own and own.max_attempts
            else options.for_queue(task.queue_name).max_attempts
        ),
        job_id=one.job_id,
    )


def _run_at(task: Task[..., Any], own: NobrokerTask[..., Any] | None) -> float | None:
    if own and own.delay is not None:
        return time.time() + own.delay.total_seconds()
    return None if task.run_after is None else task.run_after.timestamp()
