"""The delivery of leased jobs: hold the leases, execute, settle what came of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

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

from .batch import Batch, Ended, Leased
from .running import RunningJobs
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
    on_given_back: Callable[[int], None] | None = None  # so many that did not begin


class Delivery:
    """What every thread of a worker does with the jobs that it has leased."""

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
        # What the threads have in hand; an entry is made and removed by its thread.
        self._batches: set[Batch] = set()

    def run(self, claimed: Sequence[Claimed]) -> float:
        """Hold, execute and settle jobs that were leased at once, whatever comes of it.

        Returns how many seconds the longest of them took.
        """
        lease_of = self._use.lease_of
        jobs = [Leased(one, lease_of and lease_of(one.queue)) for one in claimed]
        batch = Batch(jobs)
        self._running.add(jobs)
        self._batches.add(batch)
        try:
            while not self._stop.is_set() and (job := batch.next()) is not None:
                if job is not jobs[0] and self._store.clock.boot() >= job.claimed.until:
                    # This process stood still, and others may have the rest by now.
                    batch.put_back(job)
                    break
                self._reporting.tally.add(leased=1)
                if batch.end(self._ended(job)):
                    self._settle_ended(batch)
            self._settle_ended(batch)
            self._give_back_waiting(batch)
        finally:
            self._batches.discard(batch)
            self._running.remove(jobs)
        return batch.longest

    def has_late(self) -> bool:
        """Tell whether other jobs of a batch wait for one that takes long."""
        return any(batch.is_late() for batch in list(self._batches))

    def relieve_late(self) -> None:
        """Give back what waits for a job that takes long; settle what has ended."""
        for batch in list(self._batches):
            if batch.is_late():
                logger.debug("A job takes long; the rest of its batch is given back.")
                self._give_back_waiting(batch)
                self._settle_ended(batch)

    def settle_rest(self) -> None:
        """Settle what has ended in batches whose threads hang; then nobody else will."""
        for batch in list(self._batches):
            self._settle_ended(batch)

    def _give_back_waiting(self, batch: Batch) -> None:
        if waiting := batch.take_waiting():
            self._running.give_back(waiting)
            _tell(self._reporting.on_given_back, len(waiting))

    def _ended(self, job: Leased) -> Ended:
        claimed = job.claimed
        row = claimed.row
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
            return Ended(job, attempt, Dead(error=error, reason=settle.UNREADABLE))
        _tell(self._reporting.on_start, attempt)
        return Ended(job, attempt, self._outcome(attempt))

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

    def _extend(self, job: Leased, seconds: float) -> None:
        settle.extend(self._store, job.held, seconds, timeout=self._use.lock_timeout)

    def _settle_ended(self, batch: Batch) -> None:
        """Record the outcomes of what has ended, and report them.

        A full disk or a lock that is held does not strand a job: the leases are kept by
        the heartbeat and recording is tried again.
        """
        ended = batch.take_ended()
        pause = FIRST_PAUSE
        while ended := [one for one in ended if not one.job.given_back]:
            try:
                while ended:
                    count, settled = self._record_first(ended)
                    self._running.remove([one.job for one in ended[:count]])
                    del ended[:count]
                    for one in settled:
                        _tell(self._reporting.on_settled, one)
            except (StoreFailedError, QueueClosedError):
                raise
            except (StorageError, LockTimeoutError) as error:
                logger.error(  # noqa: TRY400 - the reason is enough, again and again
                    "Job %s could not be settled, trying again: %s",
                    ended[0].job.id,
                    error,
                )
                if self._over.wait(pause):
                    return
                pause = min(2 * pause, LONGEST_PAUSE)

    def _record_first(self, ended: Sequence[Ended]) -> tuple[int, list[Settled]]:
        """Record the first outcome, or all successes that come first, in one go."""
        done = list(takewhile(lambda one: isinstance(one.outcome, Done), ended))
        if done:
            return len(done), self._record_done(done)
        first = ended[0]
        try:
            return 1, [self._record_failure(first)]
        except (NotLeasedError, JobNotFoundError):
            return 1, self._lost(first)

    def _record_done(self, done: Sequence[Ended]) -> list[Settled]:
        use = self._use
        results = [(one.job.held, one.outcome.result) for one in done]  # type: ignore[union-attr]
        lost = settle.ack_all(
            self._store, results, durable=use.durable, timeout=use.lock_timeout
        )
        self._reporting.tally.add(succeeded=len(done) - len(lost))
        settled: list[Settled] = []
        for one in done:
            if one.job.held in lost:
                settled += self._lost(one)
            else:
                settled.append(_settled(one, State.DONE))
        return settled

    def _lost(self, ended: Ended) -> list[Settled]:
        if ended.job.given_back:
            return []
        logger.warning(
            "The lease of job %s was lost; its result is dropped.", ended.job.id
        )
        self._reporting.tally.add(lost_leases=1)
        return [_settled(ended, None)]

    def _record_failure(self, ended: Ended) -> Settled:
        use, outcome = self._use, ended.outcome
        assert not isinstance(outcome, Done)
        failure = Failure(
            type=outcome.error.type,
            message=outcome.error.message,
            traceback=outcome.error.traceback,
        )
        delay = None
        if isinstance(outcome, Dead):
            settle.bury(
                self._store,
                ended.job.held,
                error=failure,
                reason=outcome.reason,
                durable=use.durable,
                timeout=use.lock_timeout,
            )
        else:
            delay = settle.nack(
                self._store,
                ended.job.held,
                error=failure,
                delay=outcome.delay,
                backoff=use.delay,
                durable=use.durable,
                timeout=use.lock_timeout,
            ).delay
        dead = delay is None
        self._reporting.tally.add(failed=1, dead=int(dead))
        return _settled(ended, State.DEAD if dead else State.READY, delay)


def _settled(ended: Ended, state: State | None, delay: float | None = None) -> Settled:
    return Settled(
        attempt=ended.attempt, outcome=ended.outcome, state=state, delay=delay
    )


def _tell(callback: Callable[..., None] | None, value: object) -> None:
    if callback is None:
        return
    try:
        callback(value)
    except BaseException:
        logger.exception("A callback of the worker failed; the job is not affected.")
