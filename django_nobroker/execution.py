"""Runs one attempt of a Django job: what an engine's worker calls, without a loop.

A worker calls ``started``, ``execute`` and ``settled`` of :class:`TaskExecution` in
this order, the first two in one thread. All three run in one context of their own, so
neither a language nor any other context variable leaks from one job into the next.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from django.db.backends.base.base import BaseDatabaseWrapper

from . import arguments, failures, registry, report, results, seam, surroundings
from .compat import AnyResult, Task
from .conf import Configuration
from .exceptions import NobrokerError, SerializationError
from .invocation import CALLERS, call, check_arguments
from .job_context import JobContext

logger = logging.getLogger("django_nobroker.worker")


class RunsTasks(Protocol):
    """What the execution needs to know of a backend."""

    alias: str
    configuration: Configuration

    @property
    def engine(self) -> seam.Engine:
        """The engine that hands out the attempts."""


@dataclass(slots=True, kw_only=True)
class Run:
    """One attempt on its way through the three calls."""

    attempt: seam.Attempt
    context: contextvars.Context
    task: Task[..., Any] | None = None
    call: arguments.TaskCall | None = None
    result: AnyResult | None = None
    refusal: seam.Outcome | None = None  # why it cannot run at all
    raised: BaseException | None = None


class TaskExecution:
    """The callbacks of one backend's worker; one object serves all its threads.

    ``inline`` is for tests: the caller's connections are left alone, and
    ``KeyboardInterrupt`` passes through.
    """

    def __init__(self, backend: RunsTasks, *, inline: bool = False) -> None:
        self._backend = backend
        self._inline = inline
        # The attempts under way, by identity: an entry is made when one starts, and
        # removed when it is settled.
        self._runs: dict[int, Run] = {}
        # What the threads leave open, by identity; an entry is written by its thread.
        self._kept: dict[int, tuple[threading.Thread, BaseDatabaseWrapper]] = {}

    def close(self) -> None:
        """Close what threads that have ended left open: database connections.

        To be called when the worker is over; Python 3.13 warns of what is not closed.
        """
        for key, (thread, connection) in list(self._kept.items()):
            if not thread.is_alive():
                surroundings.close_for_good(connection)
                del self._kept[key]

    def started(self, attempt: seam.Attempt) -> None:
        """Find the task and its arguments, and say that it starts."""
        run = Run(attempt=attempt, context=contextvars.copy_context())
        self._runs[id(attempt)] = run
        run.context.run(self._start, run)

    def execute(self, attempt: seam.Attempt) -> seam.Outcome:
        """Call the task; whatever it raises is an outcome."""
        if id(attempt) not in self._runs:
            self.started(attempt)
        run = self._runs[id(attempt)]
        outcome: seam.Outcome = run.context.run(self._execute, run)
        return outcome

    def settled(self, settled: seam.Settled) -> None:
        """Say what became of the attempt, and tidy up behind it."""
        self.finish(settled)

    def finish(self, settled: seam.Settled) -> AnyResult | None:
        """See :meth:`settled`.

        Returns the result, or None if there is no such task to have one.
        """
        run = self._runs.pop(id(settled.attempt), None)
        if run is None:
            # It never ran: the engine could not read what it was to run with.
            report.end(self._backend, settled, None, None)
            return None
        try:
            return run.context.run(self._settle, run, settled)
        finally:
            # The exception's traceback holds everything that the task had in hand.
            run.raised = None

    def _start(self, run: Run) -> None:
        if not self._inline:
            surroundings.prepare()
        surroundings.forget_request()
        try:
            run.call = arguments.load_call(run.attempt.payload)
            run.task = registry.resolve(run.call.path)
        except registry.UnknownTaskError as error:
            run.refusal = _dead(error, failures.UNKNOWN_TASK)
        except ValueError as error:
            run.refusal = _dead(error, failures.WRONG_PAYLOAD)
        except BaseException as error:
            if self._passes(error):
                raise
            # The module could not be imported; the next deployment may mend that.
            run.refusal = seam.Retry(error=failures.describe(error))
        else:
            run.result = self._result_of(run.task, run.call, run.attempt)
            results.start(run.result, run.attempt, time.time())
        self._tell(lambda: report.start(self._backend, run.attempt, run.result))

    def _result_of(
        self, task: Task[..., Any], call: arguments.TaskCall, attempt: seam.Attempt
    ) -> AnyResult:
        if attempt.number > 1:
            try:
                detail = self._backend.engine.job(attempt.id)
            except NobrokerError:
                text = "Job %s: its earlier attempts cannot be read."
                logger.warning(text, attempt.id, exc_info=True)
            else:
                return results.from_job(detail, task, call, self._backend.alias)
        return results.promised(
            results.task_of_job(
                task,
                self._backend.alias,
                priority=attempt.priority,
                queue_name=attempt.queue,
            ),
            attempt.id,
            call.args,
            call.kwargs,
            enqueued_at=attempt.enqueued_at,
        )

    def _execute(self, run: Run) -> seam.Outcome:
        if run.refusal is not None:
            return run.refusal
        assert run.task is not None
        assert run.call is not None
        assert run.result is not None
        args = run.call.args
        if run.task.takes_context:
            args = [JobContext(task_result=run.result, lease=run.attempt), *args]
        keep = surroundings.open_transactions() if self._inline else frozenset()
        try:
            return self._outcome(run, run.task, args, run.call.kwargs)
        finally:
            surroundings.roll_back(keep=keep)
            if not self._inline:
                self._tidy()

    def _outcome(
        self, run: Run, task: Task[..., Any], args: list[Any], kwargs: dict[str, Any]
    ) -> seam.Outcome:
        try:
            check_arguments(task, args, kwargs)
        except TypeError as error:
            # No other attempt can do better until the code is another.
            return _dead(error, failures.WRONG_ARGUMENTS)
        try:
            value = call(task, args, kwargs)
        except BaseException as error:
            if self._passes(error):
                raise
            run.raised = error
            options = self._backend.configuration.options.for_queue(run.attempt.queue)
            return failures.outcome_of(
                error,
                task,
                run.attempt,
                options,
                failures.describe(error, callers=CALLERS),
            )
        try:
            return seam.Done(result=arguments.dump_result(value))
        except SerializationError as error:
            return _dead(TypeError(str(error)), failures.WRONG_RESULT)

    def _tell(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except BaseException as error:
            if self._passes(error):
                raise
            # Django catches what receivers raise, but not SystemExit and its like.
            logger.exception("A receiver of a task's signal tried to end the worker.")

    def _passes(self, error: BaseException) -> bool:
        return self._inline and isinstance(error, KeyboardInterrupt)

    def _settle(self, run: Run, settled: seam.Settled) -> AnyResult | None:
        if run.result is not None:
            results.settle(run.result, settled, time.time())
        try:
            self._tell(
                lambda: report.end(self._backend, settled, run.result, run.raised)
            )
        finally:
            if not self._inline:
                # A receiver may use the database, too.
                surroundings.roll_back()
                self._tidy()
        return run.result

    def _tidy(self) -> None:
        surroundings.tidy()
        for connection in surroundings.kept_connections():
            self._kept[id(connection)] = threading.current_thread(), connection


def _dead(error: Exception, reason: str) -> seam.Dead:
    return seam.Dead(error=failures.describe(error), reason=reason)
