"""The part of a queue that looks, and that brings dead letters back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from django_nobroker import limits
from django_nobroker.engine import deadletters, keys, listing
from django_nobroker.engine.errors import JobNotFoundError, NotLeasedError
from django_nobroker.engine.states import Row
from django_nobroker.engine.tables import Tables

from .job import Job, JobState, T
from .opening import OpenQueue

_STATES = tuple(JobState)
#: Dead letters looked through at once.
_PAGE = 500


@dataclass(frozen=True, slots=True)
class QueueStats:
    """How many jobs are in which state now; ``total`` is the sum."""

    ready: int
    delayed: int
    leased: int
    done: int
    dead: int
    total: int


class Inspecting(OpenQueue[T]):
    """Counting, listing, finding; requeueing what is dead."""

    def get(self, job_id: str) -> Job[T]:
        """Return the job of that id; raises ``JobNotFoundError``."""
        store = self.opened()

        def look(tables: Tables) -> tuple[int, Row] | None:
            number = tables.queue_number(self.name)
            return None if number is None else tables.find(job_id, number)

        found = store.look(look)
        if found is None:
            msg = f"No job {job_id!r} is in the queue {self.name}."
            raise JobNotFoundError(msg)
        return self.as_job(*found)

    def _dead(self) -> Iterator[Job[T]]:
        after = None
        while page := self.dlq(limit=_PAGE, after=after):
            yield from page
            after = page[-1]

    def stats(self) -> QueueStats:
        """Count the jobs by state; the cost does not grow with their number."""

        def look(tables: Tables) -> tuple[tuple[int, ...], int]:
            number = tables.queue_number(self.name)
            if number is None:
                return (0,) * keys.SLOTS, 0
            return tables.counts(number), tables.expired(self._clock.boot()).get(
                number, 0
            )

        (ready, delayed, leased, done, dead, *_), expired = self.opened().look(look)
        # A lease that has run out is nobody's: the job is there for the taking.
        ready, leased = ready + expired, leased - expired
        return QueueStats(
            ready, delayed, leased, done, dead, ready + delayed + leased + done + dead
        )

    def list_jobs(
        self,
        state: JobState | str | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        after: Job[T] | None = None,
    ) -> list[Job[T]]:
        """Return jobs in the order in which they were enqueued, of one state or of all.

        ``after`` is the last job of the page before, wherever that is now: the next
        page begins behind it, at no more cost than the first one. ``offset`` counts
        jobs to leave out, one by one.
        """
        wanted = None if state is None else _STATES.index(JobState(state))
        if limit is not None:
            limits.whole(limit, "limit", at_least=0)
        limits.whole(offset, "offset", at_least=0)
        seen = None if after is None else limits.instance(after, Job, "after").position

        def look(tables: Tables) -> list[tuple[int, Row]]:
            number = tables.queue_number(self.name)
            if number is None:
                return []
            found = listing.walk(tables, state=wanted, queue=number, after=seen)
            end = None if limit is None else offset + limit
            return list(islice(found, offset, end))

        return [self.as_job(*found) for found in self.opened().look(look)]

    def dlq(
        self,
        *,
        limit: int | None = None,
        offset: int = 0,
        after: Job[T] | None = None,
    ) -> list[Job[T]]:
        """Return the dead letters in the order in which they were enqueued.

        See :meth:`list_jobs`.
        """
        return self.list_jobs(JobState.DEAD, limit=limit, offset=offset, after=after)

    def requeue_dead(
        self,
        job_id: str | None = None,
        *,
        matching: Callable[[Job[T]], bool] | None = None,
    ) -> int:
        """Make one dead job, or all of them, ready again; returns how many.

        With ``matching`` those for which it returns true. Attempts start anew. A
        job that is not dead: ``NotLeasedError``. Beyond ``max_pending``:
        ``QueueFull``, and nothing is moved.
        """
        store = self.writable()
        if matching is not None:
            if job_id is not None:
                raise TypeError("Give a job_id or matching, not both.")
            positions = [job.position for job in self._dead() if matching(job)]
        elif job_id is None:
            positions = deadletters.dead_positions(store, self.name)
        else:
            job = self.get(job_id)
            if job.state is not JobState.DEAD:
                msg = f"Job {job_id} is not dead but {job.state.value}."
                raise NotLeasedError(msg)
            positions = [job.position]
        moved = deadletters.requeue(
            store,
            positions,
            by="",
            durable=self.fsync,
            timeout=self.lock_timeout,
            max_pending=self.max_pending,
        )
        return len(moved)
