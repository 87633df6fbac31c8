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
from collections.abc import Callable, Sequence

from django_nobroker.engine import claim, doorbell, roster
from django_nobroker.engine.claim import Claim, Claimed
from django_nobroker.engine.errors import (
    LockTimeoutError,
    QueueClosedError,
    StorageError,
    StoreFailedError,
)
from django_nobroker.engine.store import Store
from django_nobroker.seam import (
    Attempt,
    Execute,
    Settled,
    WorkerOptions,
    WorkerStats,
)

from .delivery import FIRST_PAUSE, LONGEST_PAUSE, Delivery, Reporting, StoreOptions
from .pace import Pace
from .quota import Quota
from .running import RunningJobs
from .tally import Tally
from .upkeep import Upkeep

logger = logging.getLogger("django_nobroker.worker")


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
        self._options = options
        self._use = use
        self._stop = stop
        self._slots = doorbell.slots_of(options.queues)
        self._running = RunningJobs(
            store,
            lease=options.lease,
            interval=use.heartbeat_interval,
            timeout=use.lock_timeout,
        )
        self._upkeep = Upkeep(store, use.terms_of, timeout=use.lock_timeout)
        self._tally = Tally()
        self._quota = Quota(options.max_jobs, options.concurrency)
        self._over = threading.Event()  # no further job, for a reason of our own
        self._delivery = Delivery(
            store,
            execute,
            Reporting(
                options.worker_id,
                self._tally,
                on_start,
                on_settled,
                self._quota.give_up,
            ),
            use=use,
            running=self._running,
            stop=stop,
            over=self._over,
        )
        # Protects the numbers below; taken alone.
        self._mutex = threading.Lock()
        self._busy = 0  # threads that hold jobs
        self._last_work = time.monotonic()
        # Held by the one idle thread that sleeps on the doorbell.
        self._bed = threading.Lock()
        self._failure: BaseException | None = None

    def run(self) -> WorkerStats:
        """Work until told to stop, or until the options say that it is enough."""
        store = self._store
        self._sleeper = doorbell.Sleeper(
            store.directory, self._slots, store.vfs, store.access
        )
        self._member = self._enter_roster()
        self._running.start()
        self._upkeep.start()
        threads = [
            self._thread(self._work, str(number))
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
            self._delivery.settle_rest()
            if held := self._running.held():
                count = self._running.give_back(held)
                logger.warning("Gave %d running job(s) back.", count)
            self._running.stop()
            self._upkeep.stop()
            self._sleeper.close()
            if self._member is not None:
                self._member.leave()
        if self._failure is not None:
            raise self._failure
        return self._tally.stats()

    def _enter_roster(self) -> roster.Membership | None:
        store, options = self._store, self._options
        entry = roster.WorkerEntry(
            id=options.worker_id,
            queues=tuple(options.queues),
            exclude=tuple(options.exclude),
            concurrency=options.concurrency,
        )
        try:
            return roster.Membership(
                store.directory, entry, store.vfs, store.access, store.clock
            )
        except StorageError as error:
            logger.warning("Nobody will see that this worker is alive: %s", error)
            return None

    def _wait_for(self, threads: list[threading.Thread]) -> None:
        """Return when all threads are done, or when the grace after a stop is over."""
        deadline: float | None = None
        rest = list(threads)
        while rest:
            if self._delivery.has_late():
                # Settling may take its time, and this thread has to watch the rest.
                rest.append(self._thread(self._delivery.relieve_late, "relief"))
                rest[-1].start()
            # Short waits: a signal handler of this thread may set the event.
            rest[0].join(0.05 if not self._stop.is_set() else 0.02)
            rest = [thread for thread in rest if thread.is_alive()]
            if self._member is not None:
                self._member.beat()
            if self._stop.is_set():
                self._sleeper.wake()
                grace = self._options.grace
                if deadline is None and grace is not None:
                    deadline = time.monotonic() + grace
                if deadline is not None and time.monotonic() > deadline:
                    return

    # --- one thread -----------------------------------------------------------

    def _work(self) -> None:
        pace = Pace(self._options.at_once)
        while claimed := self._next(pace.size):
            try:
                pace.learn(self._delivery.run(claimed))
            finally:
                self._end_of_batch()

    def _thread(self, target: Callable[[], None], name: str) -> threading.Thread:
        def run() -> None:
            try:
                target()
            except (StoreFailedError, QueueClosedError) as error:
                self._fail(error)
            except BaseException as error:
                logger.exception("A worker thread ended by an error of its own.")
                self._fail(error)

        return threading.Thread(target=run, name=f"nobroker-{name}", daemon=True)

    def _fail(self, error: BaseException) -> None:
        if self._failure is None:
            self._failure = error
        self._over.set()
        self._sleeper.wake()

    def _next(self, most: int) -> Sequence[Claimed]:
        """Lease the next jobs, waiting for one; none when there is to be none."""
        while self._going_on() and (count := self._quota.reserve(most)):
            jobs = self._look(count).jobs
            if not jobs:
                self._quota.give_up(count - 1)  # one is enough to wait for
                count = 1
                jobs = self._wait_for_job()
            self._quota.give_up(count - len(jobs))
            if jobs:
                return jobs
        return ()

    def _wait_for_job(self) -> Sequence[Claimed]:
        with self._bed:
            while self._going_on():
                found = self._look(1, sleep=True)
                if found.jobs:
                    return found.jobs
                if self._is_enough(found):
                    self._over.set()
                    break
                self._sleeper.wait(self._pause(found))
        return ()

    def _going_on(self) -> bool:
        return not self._stop.is_set() and not self._over.is_set()

    def _look(self, count: int, *, sleep: bool = False) -> Claim:
        options, use = self._options, self._use
        wish = claim.Wish(
            queues=tuple(options.queues) or None,
            exclude=frozenset(options.exclude),
            count=count,
            sharers=options.concurrency,
            careful=True,
            seconds=options.lease,
            seconds_of=use.lease_of,
            worker=options.worker_id,
            delay=use.delay,
            durable_only=use.durable,
            asks_for_retries=options.idle_timeout is not None,
            sleep_slots=self._slots if sleep else (),
            # A little longer than we sleep, so that the last instant counts.
            sleep_seconds=options.poll_interval + 0.1,
        )
        pause = FIRST_PAUSE
        while True:
            try:
                found = claim.claim(self._store, wish, timeout=use.lock_timeout)
            except StoreFailedError:
                raise
            except (StorageError, LockTimeoutError) as error:
                logger.error("No job could be leased, trying again: %s", error)  # noqa: TRY400
                if self._stop.wait(pause) or self._over.is_set():
                    return Claim()
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            if found.jobs:
                with self._mutex:
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

    def _end_of_batch(self) -> None:
        with self._mutex:
            self._busy -= 1
            self._last_work = time.monotonic()
