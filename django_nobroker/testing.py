"""Runs enqueued tasks inside tests, on the caller's thread and connections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured

from . import seam
from .backends import LogBackend, Prepared
from .compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    AnyResult,
    Task,
    TaskResult,
    task_backends,
)
from .execution import TaskExecution

A = TypeVar("A")
B = TypeVar("B")
P = ParamSpec("P")
R = TypeVar("R")

_PATIENCE = 10.0  # seconds for the engine to give an interrupted job back


def run_tasks(
    *,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    queues: Iterable[str] | None = None,
    max_tasks: int | None = None,
) -> list[AnyResult]:
    """Run what is due, and what that enqueues in turn, as the worker would.

    Everything happens on the caller's thread: inside a ``TestCase`` tasks see the
    rows of the test's transaction. Failures are recorded as always and not raised;
    retries that are due at once are run, later ones are left. ``KeyboardInterrupt``
    passes through, and the job that it hit is given back.

    Args:
        backend: the alias in ``TASKS``.
        queues: the names of the only queues to look into.
        max_tasks: how many attempts to run at most.

    Returns:
        One result per job, in the order in which they first ran, as it is after the
        job's last attempt. Jobs of unknown tasks have none.
    """
    chosen = task_backends[backend]
    if not isinstance(chosen, LogBackend):
        raise ImproperlyConfigured(
            f"run_tasks() runs jobs of LogBackend, and TASKS[{backend!r}] is a "
            f"{type(chosen).__qualname__}."
        )
    if isinstance(queues, str):
        raise TypeError(f"queues must be a list of names, not the string {queues!r}.")
    if max_tasks is not None and max_tasks < 1:
        return []
    _refuse_event_loop()
    return _drain(chosen, queues=tuple(queues or ()), max_jobs=max_tasks)


class ImmediateBackend(LogBackend):
    """A log backend for tests and shells that runs what is due within ``enqueue()``.

    Each job goes the whole way: it is written, leased, run and settled, and its
    arguments and result make the round trip through JSON. A job that has to wait,
    for its time or for a retry, stays in the store; one that ``KeyboardInterrupt``
    ends is discarded.
    """

    async def aenqueue(
        self, task: Task[P, R], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TaskResult[P, R]:
        """See ``enqueue``; tasks run in the thread that Django's ORM runs in."""
        return await sync_to_async(self.enqueue)(task, args, kwargs)

    def _submit(self, prepared: list[Prepared[P, R]]) -> list[TaskResult[P, R]]:
        _refuse_event_loop()
        enqueued = super()._submit(prepared)
        try:
            # A result says nothing of its task's signature.
            ended: dict[str, Any] = {result.id: result for result in _drain(self)}
        except KeyboardInterrupt:
            # Whoever interrupts it does not want the next enqueue to run it again.
            self.engine.discard([result.id for result in enqueued], by="interrupt")
            raise
        return [ended.get(result.id, result) for result in enqueued]


def _drain(
    backend: LogBackend, *, queues: Sequence[str] = (), max_jobs: int | None = None
) -> list[AnyResult]:
    options = seam.WorkerOptions(
        queues=queues,
        lease=backend.configuration.options.visibility_timeout,
        grace=0.0,
        max_jobs=max_jobs,
        batch=True,
        worker_id="run_tasks",
        at_once=1,
    )
    execution = TaskExecution(backend, inline=True)
    desk = _Desk()
    stop = threading.Event()
    found: dict[str, AnyResult] = {}

    def settled(settled: seam.Settled) -> None:
        result = execution.finish(settled)
        if result is not None:
            found[result.id] = result

    with ThreadPoolExecutor(1, thread_name_prefix="run_tasks") as pool:
        worker = pool.submit(
            backend.engine.run_worker,
            desk.hand_over(execution.execute),
            options,
            stop=stop,
            on_start=desk.hand_over(execution.started),
            on_settled=desk.hand_over(settled),
        )
        worker.add_done_callback(lambda _: desk.close())
        try:
            desk.serve()
        except BaseException:
            stop.set()
            # First the engine gives the job back; only then may the job's thread
            # go on, or its attempt would count as failed.
            wait([worker], timeout=_PATIENCE)
            desk.abandon()
            raise
    worker.result()
    return list(found.values())


class _Desk:
    """Where an engine's thread hands its calls over to the thread of the test."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = (
            SimpleQueue()
        )
        self._open: Future[Any] | None = None
        self._is_abandoned = False

    def hand_over(self, function: Callable[[A], B]) -> Callable[[A], B]:
        """Return ``function``, to be called in the engine's thread, run in ours."""

        def call(argument: A) -> B:
            if self._is_abandoned:
                raise RuntimeError("The test was interrupted.")
            answer: Future[B] = Future()
            self._calls.put((lambda: function(argument), answer))
            return answer.result()

        return call

    def serve(self) -> None:
        """Run what is handed over until :meth:`close`; what it raises, raise."""
        while (item := self._calls.get()) is not None:
            act, self._open = item
            self._open.set_result(act())
            self._open = None

    def close(self) -> None:
        """End :meth:`serve`, after what was handed over before."""
        self._calls.put(None)

    def abandon(self) -> None:
        """Let the engine's thread go on without an answer."""
        self._is_abandoned = True
        if self._open is not None:
            self._open.set_exception(RuntimeError("The test was interrupted."))


def _refuse_event_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "Tasks cannot be run inside a coroutine: use await sync_to_async(run_tasks)(), "
        "or await aenqueue() with the ImmediateBackend."
    )
