"""The jobs that this worker holds right now, and the heartbeat that keeps them."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from django_nobroker.engine import settle
from django_nobroker.engine.errors import NobrokerError
from django_nobroker.engine.settle import Held
from django_nobroker.engine.store import Store

logger = logging.getLogger("django_nobroker.worker")

#: A heartbeat comes three times within one lease, but never more often than this.
_SHORTEST = 0.05


@dataclass(slots=True)
class Running:
    """One leased job between its claim and its settling."""

    id: str
    held: Held
    lease: float | None = None  # seconds; None = the worker's
    given_back: bool = field(default=False)


class RunningJobs:
    """The set of leased jobs; a thread renews their leases while there are any.

    The heartbeat goes on until the last job is settled, through a graceful stop
    too. An error is logged and tried again at the next beat: a lease that is
    really lost shows when the job is settled.
    """

    def __init__(
        self, store: Store, *, lease: float, interval: float | None, timeout: float
    ) -> None:
        self._store = store
        self._lease = lease
        self._timeout = timeout
        self._interval = max(_SHORTEST, interval or lease / 3)
        # Protects the table; taken alone.
        self._mutex = threading.Lock()
        self._jobs: dict[int, Running] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=self._beat, name="nobroker-heartbeat", daemon=True
        )

    def start(self) -> None:
        """Start the heartbeat."""
        self._thread.start()

    def add(self, job: Running) -> None:
        """Hold a job from now on."""
        with self._mutex:
            self._jobs[job.held.position] = job

    def remove(self, job: Running) -> None:
        """Hold a job no longer."""
        with self._mutex:
            self._jobs.pop(job.held.position, None)

    def held(self) -> list[Running]:
        """Return the jobs that are held now."""
        with self._mutex:
            return list(self._jobs.values())

    def give_back(self) -> int:
        """Release every lease without burning the attempt; return how many."""
        return sum(self.release(job) for job in self.held())

    def release(self, job: Running) -> bool:
        """Release one lease without burning the attempt; False if that failed."""
        job.given_back = True
        try:
            settle.release(self._store, job.held, durable=True, timeout=self._timeout)
        except NobrokerError as error:
            logger.warning("Job %s could not be given back: %s", job.id, error)
            return False
        return True

    def stop(self) -> None:
        """End the heartbeat."""
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(self._interval):
            by_lease: dict[float, list[Held]] = {}
            for job in self.held():
                if not job.given_back:
                    by_lease.setdefault(job.lease or self._lease, []).append(job.held)
            for lease, held in by_lease.items():
                try:
                    settle.heartbeat(self._store, held, lease, timeout=self._timeout)
                except NobrokerError as error:
                    logger.warning(
                        "The leases could not be renewed, trying again: %s", error
                    )
