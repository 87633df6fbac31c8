"""The loop of a worker on the embedded log: lease, execute, settle, wait.

Every thread leases for itself, so a finished job is followed by the next one
without a detour. When nothing is due, one of the idle threads sleeps on the
doorbell and the others wait for its place: a wake-up goes from thread to
thread for as long as there are jobs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from django_nobroker import exception_text, seam
from django_nobroker.engine import claim, doorbell, history, settle
from django_nobroker.engine.claim import Claim, Claimed
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
    WorkerOptions,
)

from .running import Running, RunningJobs

logger = logging.getLogger("django_nobroker.worker")

# After an error of the disk or the lock the worker tries again, waiting longer each time.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """How the loop uses the store."""

    delay: Delay  # of a retry: queue and attempt -> seconds
    durable: bool = True
    lock_timeout: float = 10.0
    heartbeat_interval: float | None = None


@dataclass(slots=True)
class _Tally:
    leased: int = 0
    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    lost_leases: int = 0


class Loop:
    """One run of a worker; ``run`` returns when it is over."""

    def __init__(
        self,
        store: Store,
        execute: Execute,
        options: WorkerOptions,
        *,
        use: StoreOptions,
        stop: threading.Event,
        on_start: Callable[[Attempt], None] | None = None,
        on_settled: Callable[[Settled], None] | None = None,
    ) -> None:
        self._store = store
        self._execute = execute
        self._options = options
        self._use = use
        self._stop = stop
        self._on_start = on_start
        self._on_settled = on_settled
        self._slots = doorbell.slots_of(options.queues)
        self._running = RunningJobs(
            store,
            lease=options.lease,
            interval=use.heartbeat_interval,
            timeout=use.lock_timeout,
        )
        # Protects the numbers below; taken alone.
        self._mutex = threading.Lock()
        self._tally = _Tally()
        self._reserved = 0  # of max_jobs
        self._busy = 0  # threads that hold a job
        self._last_work = time.monotonic()
        # Held by the one idle thread that sleeps on the doorbell.
        self._bed = threading.Lock()
        self._over = threading.Event()  # no further job, for a reason of our own
        self._failure: BaseException | None = None

    def run(self) -> seam.WorkerStats:
        """Work until told to stop, or until the options say that it is enough."""
        store = self._store
        self._sleeper = doorbell.Sleeper(
            store.directory, self._slots, store.vfs, store.access
        )
        self._running.start()
        threads = [
            threading.Thread(target=self._work, name=f"nobroker-{number}", daemon=True)
            for number in range(self._options.concurrency)
        ]
        try:
            for thread in threads:
                thread.start()
            self._wait_for(threads)
        finally:
            self._over.set()
            self._sleeper.wake()
            with self._bed:
                pass  # now nobody sleeps on the pipes that are closed below
            if self._running.held():
                count = self._running.give_back()
                logger.warning("Gave %d running job(s) back.", count)
            self._running.stop()
            self._sleeper.close()
        if self._failure is not None:
            raise self._failure
        tally = self._tally
        return seam.WorkerStats(
            leased=tally.leased,
            succeeded=tally.succeeded,
            failed=tally.failed,
            dead=tally.dead,
            lost_leases=tally.lost_leases,
        )

    def _wait_for(self, threads: list[threading.Thread]) -> None:
        """Return when all threads are done, or when the grace after a stop is over."""
        deadline: float | None = None
        rest = list(threads)
        while rest:
            # Short waits: a signal handler of this thread may set the event.
            rest[0].join(0.05 if not self._stop.is_set() else 0.02)
            rest = [thread for thread in rest if thread.is_alive()]
            if self._stop.is_set():
                self._sleeper.wake()
                grace = self._options.grace
                if deadline is None and grace is not None:
                    deadline = time.monotonic() + grace
                if deadline is not None and time.monotonic() > deadline:
                    return

    # --- one thread -----------------------------------------------------------

    def _work(self) -> None:
        try:
            while (claimed := self._next()) is not None:
                try:
                    self._run(claimed)
                finally:
                    self._end_of_job()
        except StoreFailedError as error:
            self._fail(error)
        except QueueClosedError as error:
            self._fail(error)
        except BaseException as error:
            logger.exception("A worker thread ended by an error of its own.")
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
        self._over.set()
        self._sleeper.wake()

    def _next(self) -> Claimed | None:
        """Lease the next job, waiting for it; None when there is to be none."""
        while self._going_on() and self._reserve():
            found = self._look(sleep=False)
            if found.jobs:
                return found.jobs[0]
            with self._bed:
                while self._going_on():
                    found = self._look(sleep=True)
                    if found.jobs:
                        return found.jobs[0]
                    if self._is_enough(found):
                        self._over.set()
                        break
                    self._sleeper.wait(self._pause(found))
            self._give_up_reservation()
        return None

    def _going_on(self) -> bool:
        return not self._stop.is_set() and not self._over.is_set()

    def _reserve(self) -> bool:
        """Count the job to come, so that all threads together never exceed max_jobs."""
        with self._mutex:
            most = self._options.max_jobs
            if most is not None and self._reserved >= most:
                return False
            self._reserved += 1
            return True

    def _give_up_reservation(self) -> None:
        with self._mutex:
            self._reserved -= 1

    def _look(self, *, sleep: bool) -> Claim:
        options, use = self._options, self._use
        wish = claim.Wish(
            queues=tuple(options.queues) or None,
            exclude=frozenset(options.exclude),
            count=1,
            seconds=options.lease,
            worker=options.worker_id,
            delay=use.delay,
            durable_only=use.durable,
            sleep_slots=self._slots if sleep else (),
            # A little longer than we sleep, so that the last instant counts.
            sleep_seconds=options.poll_interval + 0.1,
        )
        pause = _FIRST_PAUSE
        while True:
            try:
                found = claim.claim(self._store, wish, timeout=use.lock_timeout)
            except StoreFailedError:
                raise
            except (StorageError, LockTimeoutError) as error:
                logger.error("No job could be leased, trying again: %s", error)  # noqa: TRY400
                if self._stop.wait(pause) or self._over.is_set():
                    return Claim()
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            if found.jobs:
                with self._mutex:
                    self._tally.leased += 1
                    self._busy += 1
            return found

    def _is_enough(self, found: Claim) -> bool:
        """Decide whether an idle worker ends; called by one thread at a time."""
        options = self._options
        with self._mutex:
            busy, since = self._busy, self._last_work
        if busy:
            return False
        if options.batch:
            return True
        if options.idle_timeout is None:
            return False
        if found.retries or found.lost:
            with self._mutex:
                self._last_work = time.monotonic()
            return False
        return time.monotonic() - since >= options.idle_timeout

    def _pause(self, found: Claim) -> float:
        pause = self._options.poll_interval
        if found.next_due is not None:
            pause = min(pause, found.next_due - self._store.clock.boot() + 0.001)
        if self._options.idle_timeout is not None:
            left = self._last_work + self._options.idle_timeout - time.monotonic()
            pause = min(pause, max(left, 0.01))
        if self._options.batch:
            pause = min(pause, 0.05)  # another thread is busy still
        return max(pause, 0.001)

    def _end_of_job(self) -> None:
        with self._mutex:
            self._busy -= 1
            self._last_work = time.monotonic()

    # --- one job ----------------------------------------------------------------

    def _run(self, claimed: Claimed) -> None:
        row = claimed.row
        job = Running(row.id, Held(claimed.position, claimed.token))
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
                worker=self._options.worker_id,
                extend=lambda seconds: self._extend(job, seconds),
                held=claimed,
            )
            if payload is None:
                failure = claim.damaged(claimed)
                error = seam.Error(type=failure.type, message=failure.message)
                outcome: Outcome = Dead(error=error, reason=settle.UNREADABLE)
            else:
                self._tell(self._on_start, attempt)
                outcome = self._outcome(attempt)
            settled = self._settle(job, attempt, outcome)
        finally:
            self._running.remove(job)
        if settled is not None:
            self._tell(self._on_settled, settled)

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
        pause = _FIRST_PAUSE
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
                with self._mutex:
                    self._tally.lost_leases += 1
                return Settled(attempt=attempt, outcome=outcome, state=None)
            except (StoreFailedError, QueueClosedError):
                raise
            except (StorageError, LockTimeoutError) as error:
                logger.error(  # noqa: TRY400 - the reason is enough, again and again
                    "Job %s could not be settled, trying again: %s", job.id, error
                )
                if self._over.wait(pause):
                    return None
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _record(self, job: Running, attempt: Attempt, outcome: Outcome) -> Settled:
        store, use, tally = self._store, self._use, self._tally
        common = {"durable": use.durable, "timeout": use.lock_timeout}
        if isinstance(outcome, Done):
            settle.ack(store, job.held, result=outcome.result, **common)  # type: ignore[arg-type]
            with self._mutex:
                tally.succeeded += 1
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
        with self._mutex:
            tally.failed += 1
            tally.dead += dead
        return Settled(
            attempt=attempt,
            outcome=outcome,
            state=State.DEAD if dead else State.READY,
            delay=delay,
        )

    @staticmethod
    def _tell(callback: Callable[..., None] | None, value: object) -> None:
        if callback is None:
            return
        try:
            callback(value)
        except BaseException:
            logger.exception(
                "A callback of the worker failed; the job is not affected."
            )
