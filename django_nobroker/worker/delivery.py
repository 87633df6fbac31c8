"""One delivery of a job: hold its lease, execute it, settle what came of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from django_nobroker import exception_text, seam
from django_nobroker.engine import claim, history, settle
from django_nobroker.engine.claim import Claimed
from django_nobroker.engine.errors import (
    JobNotFoundError,
    LockTimeoutError,
    NotLeasedError,
    QueueClosedError,
    StorageError,
    StoreFailedError,
)
from django_nobroker.engine.lease import Delay
from django_nobroker.engine.record import Failure
from django_nobroker.engine.settle import Held
from django_nobroker.engine.store import Store
from django_nobroker.seam import (
    Attempt,
    Dead,
    Done,
    Execute,
    Outcome,
    Retry,
    Settled,
    State,
)

from .running import Running, RunningJobs
from .tally import Tally
from .upkeep import TermsOf, for_ever

logger = logging.getLogger("django_nobroker.worker")

#: After an error of the disk or the lock the worker tries again, waiting longer each time.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """How the loop uses the store."""

    delay: Delay  # of a retry: queue and attempt -> seconds
    durable: bool = True
    lock_timeout: float = 10.0
    heartbeat_interval: float | None = None
    lease_of: Callable[[str], float] | None = None  # by queue; None = the same for all
    terms_of: TermsOf = for_ever  # how long ended jobs stay, by queue


@dataclass(frozen=True, slots=True)
class Reporting:
    """Who is told of a delivery, and under which name it is done."""

    worker_id: str
    tally: Tally
    on_start: Callable[[Attempt], None] | None = None
    on_settled: Callable[[Settled], None] | None = None


class Delivery:
    """What every thread of a worker does with a job that it has leased."""

    def __init__(
        self,
        store: Store,
        execute: Execute,
        reporting: Reporting,
        *,
        use: StoreOptions,
        running: RunningJobs,
        stop: threading.Event,
        over: threading.Event,
    ) -> None:
        self._store = store
        self._execute = execute
        self._reporting = reporting
        self._use = use
        self._running = running
        self._stop = stop
        self._over = over

    def run(self, claimed: Claimed) -> None:
        """Hold, execute and settle one leased job, whatever comes of it."""
        row = claimed.row
        job = Running(
            row.id,
            Held(claimed.position, claimed.token),
            self._use.lease_of and self._use.lease_of(claimed.queue),
        )
        self._running.add(job)
        try:
            if self._stop.is_set():  # it was leased in that very instant
                self._running.release(job)
                return
            payload = history.payload(self._store, row)
            attempt = Attempt(
                id=row.id,
                queue=claimed.queue,
                kind=claimed.kind or None,
                payload=payload or b"",
                number=row.attempts,
                max_attempts=row.max_attempts,
                priority=row.priority,
                enqueued_at=row.enqueued_at,
                worker=self._reporting.worker_id,
                extend=lambda seconds: self._extend(job, seconds),
                held=claimed,
            )
            if payload is None:
                failure = claim.damaged(claimed)
                error = seam.Error(type=failure.type, message=failure.message)
                outcome: Outcome = Dead(error=error, reason=settle.UNREADABLE)
            else:
                _tell(self._reporting.on_start, attempt)
                outcome = self._outcome(attempt)
            settled = self._settle(job, attempt, outcome)
        finally:
            self._running.remove(job)
        if settled is not None:
            _tell(self._reporting.on_settled, settled)

    def _outcome(self, attempt: Attempt) -> Outcome:
        try:
            return self._execute(attempt)
        except BaseException as error:  # noqa: BLE001
            # Whatever it is, SystemExit included: a failed attempt, never a dead worker.
            return Retry(
                error=seam.Error(
                    type=type(error).__qualname__,
                    message=exception_text.message(error),
                )
            )

    def _extend(self, job: Running, seconds: float) -> None:
        settle.extend(self._store, job.held, seconds, timeout=self._use.lock_timeout)

    def _settle(
        self, job: Running, attempt: Attempt, outcome: Outcome
    ) -> Settled | None:
        """Record an outcome; None when the job was given back meanwhile.

        A full disk or a lock that is held does not strand the job: the lease is
        kept by the heartbeat and recording is tried again.
        """
        pause = FIRST_PAUSE
        while True:
            if job.given_back:
                return None
            try:
                return self._record(job, attempt, outcome)
            except (NotLeasedError, JobNotFoundError):
                if job.given_back:
                    return None
                logger.warning(
                    "The lease of job %s was lost; its result is dropped.", job.id
                )
                self._reporting.tally.add(lost_leases=1)
                return Settled(attempt=attempt, outcome=outcome, state=None)
            except (StoreFailedError, QueueClosedError):
                raise
            except (StorageError, LockTimeoutError) as error:
                logger.error(  # noqa: TRY400 - the reason is enough, again and again
                    "Job %s could not be settled, trying again: %s", job.id, error
                )
                if self._over.wait(pause):
                    return None
                pause = min(2 * pause, LONGEST_PAUSE)

    def _record(self, job: Running, attempt: Attempt, outcome: Outcome) -> Settled:
        store, use, tally = self._store, self._use, self._reporting.tally
        common = {"durable": use.durable, "timeout": use.lock_timeout}
        if isinstance(outcome, Done):
            settle.ack(store, job.held, result=outcome.result, **common)  # type: ignore[arg-type]
            tally.add(succeeded=1)
            return Settled(attempt=attempt, outcome=outcome, state=State.DONE)
        failure = Failure(
            type=outcome.error.type,
            message=outcome.error.message,
            traceback=outcome.error.traceback,
        )
        if isinstance(outcome, Dead):
            settle.bury(store, job.held, error=failure, reason=outcome.reason, **common)  # type: ignore[arg-type]
            delay = None
        else:
            delay = settle.nack(
                store,
                job.held,
                error=failure,
                delay=outcome.delay,
                backoff=use.delay,
                durable=use.durable,
                timeout=use.lock_timeout,
            ).delay
        dead = delay is None
        tally.add(failed=1, dead=int(dead))
        return Settled(
            attempt=attempt,
            outcome=outcome,
            state=State.DEAD if dead else State.READY,
            delay=delay,
        )


def _tell(callback: Callable[..., None] | None, value: object) -> None:
    if callback is None:
        return
    try:
        callback(value)
    except BaseException:
        logger.exception("A callback of the worker failed; the job is not affected.")
