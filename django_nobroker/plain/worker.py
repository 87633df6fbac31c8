"""The plain face's worker: a handler that is called with each job of a queue."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Generic

from django_nobroker import exception_text, limits, seam
from django_nobroker.engine.claim import Claimed
from django_nobroker.engine.settle import UNDECODABLE
from django_nobroker.seam import (
    Attempt,
    Dead,
    Done,
    Outcome,
    Retry,
    WorkerOptions,
    WorkerStats,
)
from django_nobroker.worker.delivery import StoreOptions
from django_nobroker.worker.loop import Loop

from .coding import Undecodable
from .job import Job, T
from .queue import Queue

logger = logging.getLogger("django_nobroker.worker")


class Worker(Generic[T]):
    """Leases jobs of ``queue`` and calls ``handler(job)`` in ``concurrency`` threads.

    Returning acknowledges the job; raising anything is a failed attempt, and one of
    ``permanent_errors`` sends it to the dead letters at once. The lease is renewed
    while the handler runs. SIGINT and SIGTERM, or ``stop()``, let running handlers
    finish. Times are seconds.
    """

    def __init__(  # noqa: PLR0913 - the options of a worker, as documented
        self,
        queue: Queue[T],
        handler: Callable[[Job[T]], object],
        *,
        concurrency: int = 1,
        poll_interval: float = 0.1,
        max_jobs: int | None = None,
        idle_timeout: float | None = None,
        handle_signals: bool = True,
        permanent_errors: tuple[type[BaseException], ...] = (),
        heartbeat_interval: float | None = None,
    ) -> None:
        """Check the arguments; nothing happens before ``run``."""
        limits.function(handler, "handler")
        if heartbeat_interval is not None:
            limits.seconds(heartbeat_interval, "heartbeat_interval", above=0)
            if heartbeat_interval >= queue.visibility_timeout:
                msg = "heartbeat_interval must be shorter than the visibility timeout."
                raise ValueError(msg)
        self._queue = queue
        self._handler = handler
        self._permanent = limits.exceptions(permanent_errors, "permanent_errors")
        self._handle_signals = handle_signals
        self._heartbeat_interval = heartbeat_interval
        self._stop = threading.Event()
        self._options = WorkerOptions(
            queues=(queue.name,),
            concurrency=limits.whole(concurrency, "concurrency", at_least=1),
            lease=queue.visibility_timeout,
            poll_interval=limits.seconds(poll_interval, "poll_interval", above=0),
            max_jobs=None
            if max_jobs is None
            else limits.whole(max_jobs, "max_jobs", at_least=0),
            idle_timeout=(
                None
                if idle_timeout is None
                else limits.seconds(idle_timeout, "idle_timeout")
            ),
            worker_id=f"{socket.gethostname()}-{os.getpid()}",
        )

    def run(self) -> WorkerStats:
        """Work until stopped, and return what was done."""
        queue = self._queue
        loop = Loop(
            queue.writable(),
            self._execute,
            self._options,
            use=StoreOptions(
                delay=queue.retry_delay,
                durable=queue.fsync,
                lock_timeout=queue.lock_timeout,
                heartbeat_interval=self._heartbeat_interval,
                terms_of=lambda name: queue.terms() if name == queue.name else None,
            ),
            stop=self._stop,
        )
        with self._signals():
            return loop.run()

    def stop(self) -> None:
        """Take no further job; ``run`` returns when the running ones are done."""
        self._stop.set()

    def _execute(self, attempt: Attempt) -> Outcome:
        claimed = attempt.held
        assert isinstance(claimed, Claimed)  # the loop is the embedded log's own
        job = self._queue.as_leased(claimed, attempt.payload)
        if isinstance(job, Undecodable):
            error = seam.Error(type=type(job).__name__, message=job.error)
            return Dead(error=error, reason=UNDECODABLE)
        try:
            self._handler(job)
        except BaseException as error:  # noqa: BLE001 - anything raised is a failed attempt
            reason = _described(error)
            if isinstance(error, self._permanent):
                return Dead(error=reason, reason="permanent")
            return Retry(error=reason)
        return Done()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        if (
            not self._handle_signals
            or threading.current_thread() is not threading.main_thread()
        ):
            yield
            return

        def stop(_number: int, _frame: FrameType | None) -> None:
            self.stop()

        before = {
            number: signal.signal(number, stop)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _described(error: BaseException) -> seam.Error:
    return seam.Error(
        type=type(error).__name__,
        message=exception_text.message(error),
        traceback=exception_text.trace(error),
    )
