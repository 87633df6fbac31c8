"""The part of a queue that lets go: of jobs, and of the log that nobody needs."""

from __future__ import annotations

from collections.abc import Callable

from django_nobroker import limits
from django_nobroker.engine import compaction, retention, states
from django_nobroker.engine.compaction import CompactionResult
from django_nobroker.engine.replica import Progress, unwatched
from django_nobroker.engine.retention import Retention, Selection, Terms

from .job import JobState, T
from .opening import OpenQueue

_STATES = tuple(JobState)


class Retaining(OpenQueue[T]):
    """Purging jobs, compacting the log."""

    def purge(
        self, state: JobState | str | None = None, *, older_than: float | None = None
    ) -> int:
        """Take jobs out of the queue for good, and release their ids; returns how many.

        Without arguments everything goes, leased jobs included: whoever holds one is
        told so when it settles it. ``state`` picks those of one state. ``older_than``
        picks those that ended more than so many seconds ago; of a job that has not
        ended, the time since its enqueue counts.
        """
        until = None
        if older_than is not None:
            age = limits.seconds(older_than, "older_than", at_least=0)
            until = self._clock.wall() - age
        chosen = list(range(states.STATES))
        if state is not None:
            number = _STATES.index(JobState(state))
            # What only blocks an id was a done job, as a rule.
            chosen = [number] + [states.FORGOTTEN] * (number == states.DONE)
        return retention.purge(
            self.writable(),
            Selection(queue=self.name, states=chosen, until=until),
            by="",
            durable=self.fsync,
            timeout=self.lock_timeout,
        )

    def compact(
        self,
        *,
        progress: Progress | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> CompactionResult:
        """Drop this queue's ended jobs, and give back what the log needs no more.

        Jobs that ended more than ``result_ttl`` seconds ago go; a given id goes on
        blocking another one for ``job_id_ttl`` seconds. Everybody works on meanwhile.
        ``progress(done, total)`` is called with bytes; once ``stopped()`` is true it
        leaves off, and what was done stays.

        Raises ``CompactionError`` when a backup or a verification reads the log just
        now, or a newer version wrote something that this one does not know.
        """
        return compaction.compact(
            self.writable(),
            Retention(queues={self.name: self.terms()}),
            timeout=self.lock_timeout,
            progress=progress or unwatched,
            stopped=stopped or (lambda: False),
        )

    def terms(self) -> Terms:
        """Return how long ended jobs of this queue stay."""
        return Terms(results=self.result_ttl, ids=self.job_id_ttl)
