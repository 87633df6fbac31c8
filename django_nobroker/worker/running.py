"""The jobs that this worker holds right now, and the heartbeat that keeps them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from django_nobroker.engine import settle
from django_nobroker.engine.errors import NobrokerError
from django_nobroker.engine.settle import Held
from django_nobroker.engine.store import Store

from .batch import Leased

logger = logging.getLogger("django_nobroker.worker")

#: A heartbeat comes three times within one lease, but never more often than this.
_SHORTEST = 0.05


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
        self._jobs: dict[int, Leased] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=self._beat, name="nobroker-heartbeat", daemon=True
        )

    def start(self) -> None:
        """Start the heartbeat."""
        self._thread.start()

    def add(self, jobs: Sequence[Leased]) -> None:
        """Hold jobs from now on."""
        with self._mutex:
            for job in jobs:
                self._jobs[job.claimed.position] = job

    def remove(self, jobs: Sequence[Leased]) -> None:
        """Hold jobs no longer."""
        with self._mutex:
            for job in jobs:
                self._jobs.pop(job.claimed.position, None)

    def held(self) -> list[Leased]:
        """Return the jobs that are held now."""
        with self._mutex:
            return list(self._jobs.values())

    def give_back(self, jobs: Sequence[Leased]) -> int:
        """Release leases without burning the attempts; return how many."""
        for job in jobs:
            job.given_back = True
        held = [job.held for job in jobs]
        try:
            lost = settle.release_all(
                self._store, held, durable=True, timeout=self._timeout
            )
        except NobrokerError as error:
            ids = ", ".join(job.id for job in jobs)
            logger.warning("Job(s) %s could not be given back: %s", ids, error)
            return 0
        finally:
            self.remove(jobs)
        return len(held) - len(lost)

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
