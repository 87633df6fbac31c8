"""The embedded log as an engine: the seam's questions, asked of a store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from .engine import capacity, deadletters, enqueue, history, listing
from .engine.enqueue import Duplicate
from .engine.errors import JobNotFoundError
from .engine.retention import Terms
from .engine.store import Store
from .engine.tables import Tables
from .handle import StoreHandle
from .problems import problems_of
from .seam import (
    Attempt,
    Enqueued,
    Execute,
    JobDetail,
    NewJob,
    Page,
    Problem,
    QueueCounts,
    Requeued,
    Settled,
    State,
    WorkerOptions,
    WorkerStats,
)
from .views import STATES, attempts, job_view
from .worker.delivery import StoreOptions
from .worker.loop import Loop

if TYPE_CHECKING:
    from .options import Options

T = TypeVar("T")

_LOCK_TIMEOUT = 10.0


class EmbeddedEngine:
    """One store behind the seam; opened on the first question, never before."""

    capabilities = frozenset({"extend", "records"})

    def __init__(self, options: Options) -> None:
        self._options = options
        self._handle = StoreHandle(options)

    @classmethod
    def from_options(cls, options: Options, *, alias: str) -> EmbeddedEngine:
        """Return the engine that the options of a backend describe."""
        del alias  # a store is the same, whatever the settings call it
        return cls(options)

    def close(self) -> None:
        """Give the store back; the next question opens it again."""
        self._handle.close()

    # --- jobs in -------------------------------------------------------------

    def enqueue_many(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue all or none; durable when it returns."""
        if not jobs:
            return []
        store = self._handle.store
        now = store.clock.wall()
        records = [
            enqueue.new(
                queue=job.queue,
                payload=job.payload,
                now=now,
                max_attempts=job.max_attempts,
                priority=job.priority,
                due=job.run_at,
                kind=job.kind or "",
                job_id=job.job_id,
                scope="store",
            )
            for job in jobs
        ]
        options = self._options
        limits = {job.queue: options.for_queue(job.queue).max_pending for job in jobs}
        answers = capacity.waiting_for_room(
            lambda: enqueue.place(
                store,
                records,
                blocking=options.job_id_ttl,
                durable=options.fsync,
                timeout=_LOCK_TIMEOUT,
                most={name: most for name, most in limits.items() if most is not None},
            ),
            store.clock,
            until=store.clock.monotonic() + options.full_timeout,
        )
        return [
            Enqueued(
                id=answer.row.id, enqueued_at=answer.row.enqueued_at, created=False
            )
            if isinstance(answer, Duplicate)
            else Enqueued(id=answer.id, enqueued_at=answer.t)
            for answer in answers
        ]

    # --- work ----------------------------------------------------------------

    def run_worker(
        self,
        execute: Execute,
        options: WorkerOptions,
        *,
        stop: threading.Event,
        on_start: Callable[[Attempt], None],
        on_settled: Callable[[Settled], None],
    ) -> WorkerStats:
        """Run jobs until ``stop`` is set or the options say so."""
        shared = self._options
        leases = [one.visibility_timeout for _, one in shared.queues]
        leases.append(shared.visibility_timeout)
        loop = Loop(
            self._handle.store,
            execute,
            options,
            use=StoreOptions(
                delay=lambda queue, attempt: self._options.for_queue(
                    queue
                ).backoff.delay(attempt),
                durable=self._options.fsync,
                lock_timeout=_LOCK_TIMEOUT,
                heartbeat_interval=min(leases) / 3,
                lease_of=lambda queue: (
                    self._options.for_queue(queue).visibility_timeout
                ),
                terms_of=self._terms,
            ),
            stop=stop,
            on_start=on_start,
            on_settled=on_settled,
        )
        return loop.run()

    # --- looking ---------------------------------------------------------------

    def _terms(self, queue: str) -> Terms:
        options = self._options.for_queue(queue)
        return Terms(
            results=options.result_ttl,
            dead=options.dead_ttl,
            ids=self._options.job_id_ttl,
        )

    def counts(self) -> list[QueueCounts]:
        """One row per queue that holds a job, by name."""

        def look(store: Store, tables: Tables) -> list[QueueCounts]:
            expired = tables.expired(store.clock.boot())
            rows = []
            for number, name in enumerate(tables.names.queues):
                ready, delayed, leased, done, dead, *_ = tables.counts(number)
                late = expired.get(number, 0)
                if not ready + delayed + leased + done + dead:
                    continue
                rows.append(
                    QueueCounts(
                        queue=name,
                        ready=ready + late,
                        delayed=delayed,
                        leased=leased - late,
                        done=done,
                        dead=dead,
                        oldest_ready_at=min(
                            (moment for _, moment in tables.ready_priorities(number)),
                            default=None,
                        ),
                    )
                )
            return sorted(rows, key=lambda row: row.queue)

        return self._handle.look(look, [])

    def jobs(
        self,
        *,
        state: State | None = None,
        queue: str | None = None,
        kind: str | None = None,
        after: int | None = None,
        limit: int = 100,
        newest_first: bool = True,
    ) -> Page:
        """A page of jobs; ``after`` is ``Page.next`` of the page before."""

        def look(store: Store, tables: Tables) -> Page:
            number = None if queue is None else tables.queue_number(queue)
            if queue is not None and number is None:
                return Page(jobs=())
            rows = listing.walk(
                tables,
                state=None if state is None else STATES.index(state),
                queue=number,
                after=after,
                newest_first=newest_first,
            )
            fitting = (
                (position, row)
                for position, row in rows
                if kind is None or tables.names.kinds[row.kind] == kind
            )
            found = list(islice(fitting, limit + 1))
            shown = found[:limit]
            return Page(
                jobs=tuple(job_view(store, tables, *one) for one in shown),
                next=shown[-1][0] if len(found) > limit else None,
            )

        return self._handle.look(look, Page(jobs=()))

    def job(self, job_id: str) -> JobDetail:
        """One job with bodies and history; raises ``JobNotFoundError``."""

        def look(store: Store, tables: Tables) -> JobDetail | None:
            found = tables.find(job_id)
            if found is None:
                return None
            position, row = found
            records = list(history.backwards(store, row))[::-1]
            return JobDetail(
                job=job_view(store, tables, position, row),
                payload=history.payload(store, row) or b"",
                result=history.result(store, row),
                history=tuple(attempts(records)),
            )

        detail = self._handle.look(look, None)
        if detail is None:
            raise JobNotFoundError(f"No job {job_id!r} is in the store.")
        return detail

    # --- acting ------------------------------------------------------------------

    def requeue(self, job_ids: Iterable[str], *, by: str = "") -> Requeued:
        """Make dead jobs ready again, attempts reset, history kept."""
        return self._move(job_ids, deadletters.requeue, by, "it is not dead")

    def discard(self, job_ids: Iterable[str], *, by: str = "") -> Requeued:
        """Throw dead or ready jobs away; their history stays readable."""
        return self._move(
            job_ids, deadletters.discard, by, "it is neither dead nor ready"
        )

    def _move(
        self,
        job_ids: Iterable[str],
        verb: Callable[..., list[int]],
        by: str,
        unfit: str,
    ) -> Requeued:
        ids = list(dict.fromkeys(job_ids))

        def look(tables: Tables) -> dict[str, int | None]:
            found = {job_id: tables.find(job_id) for job_id in ids}
            return {
                job_id: None if one is None else one[0] for job_id, one in found.items()
            }

        positions = self._handle.store.look(look)
        moved = set(
            verb(
                self._handle.store,
                [position for position in positions.values() if position is not None],
                by=by,
                durable=self._options.fsync,
                timeout=_LOCK_TIMEOUT,
            )
        )
        skipped = {
            job_id: "there is no such job" if position is None else unfit
            for job_id, position in positions.items()
            if position not in moved
        }
        return Requeued(
            requeued=tuple(job_id for job_id in ids if job_id not in skipped),
            skipped=skipped,
        )

    def problems(self) -> list[Problem]:
        """What is wrong with the store right now; empty when all is well."""
        return self._handle.look(problems_of, [])
