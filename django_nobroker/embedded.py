"""The embedded log as an engine: the seam's questions, asked of a store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from .attempts import as_error, attempts
from .engine import enqueue, history, listing, settle
from .engine.enqueue import Duplicate
from .engine.errors import JobNotFoundError
from .engine.states import Row
from .engine.store import Store, open_store
from .engine.tables import Tables
from .engine.vfs import Access
from .seam import (
    Attempt,
    Enqueued,
    Error,
    Execute,
    JobDetail,
    JobView,
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
from .worker.loop import Loop, StoreOptions

if TYPE_CHECKING:
    from .options import Options

_STATES = (State.READY, State.LEASED, State.DONE, State.DEAD, State.DISCARDED)
_LOCK_TIMEOUT = 10.0
_DAMAGED = Error(type="DamagedRecord", message="the record of this error is damaged")


class EmbeddedEngine:
    """One store behind the seam; opened on the first question, never before."""

    capabilities = frozenset({"extend", "records"})

    def __init__(self, options: Options, *, alias: str) -> None:
        self._options = options
        self._alias = alias
        # Protects the opening; taken before any lock of the engine.
        self._mutex = threading.Lock()
        self._opened: Store | None = None

    @classmethod
    def from_options(cls, options: Options, *, alias: str) -> EmbeddedEngine:
        """Return the engine that the options of a backend describe."""
        return cls(options, alias=alias)

    @property
    def _store(self) -> Store:
        store = self._opened
        if store is None or store.closed:
            with self._mutex:
                store = self._opened
                if store is None or store.closed:
                    options = self._options
                    index = options.index_directory
                    store = self._opened = open_store(
                        options.directory,
                        access=Access.of(options.file_mode, options.group),
                        index_root=None if index is None else str(index),
                    )
        return store

    # --- jobs in -------------------------------------------------------------

    def enqueue_many(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue all or none; durable when it returns."""
        if not jobs:
            return []
        store = self._store
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
        answers = enqueue.place(
            store, records, durable=self._options.fsync, timeout=_LOCK_TIMEOUT
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
        loop = Loop(
            self._store,
            execute,
            options,
            use=StoreOptions(
                delay=lambda queue, attempt: self._options.for_queue(
                    queue
                ).backoff.delay(attempt),
                durable=self._options.fsync,
                lock_timeout=_LOCK_TIMEOUT,
            ),
            stop=stop,
            on_start=on_start,
            on_settled=on_settled,
        )
        return loop.run()

    # --- looking ---------------------------------------------------------------

    def counts(self) -> list[QueueCounts]:
        """One row per queue that holds a job, by name."""
        boot = self._store.clock.boot()

        def look(tables: Tables) -> list[QueueCounts]:
            expired = tables.expired(boot)
            rows = []
            for number, name in enumerate(tables.names.queues):
                ready, delayed, leased, done, dead, _ = tables.counts(number)
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

        return self._store.look(look)

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

        def look(tables: Tables) -> tuple[list[tuple[int, Row]], Tables]:
            found = []
            wanted = None if state is None else _STATES.index(state)
            number = None if queue is None else tables.queue_number(queue)
            if queue is not None and number is None:
                return [], tables
            for position, row in listing.walk(
                tables,
                state=wanted,
                queue=number,
                after=after,
                newest_first=newest_first,
            ):
                if kind is not None and tables.names.kinds[row.kind] != kind:
                    continue
                found.append((position, row))
                if len(found) > limit:
                    break
            return found, tables

        found, tables = self._store.look(look)
        shown = found[:limit]
        return Page(
            jobs=tuple(self._view(position, row, tables) for position, row in shown),
            next=shown[-1][0] if len(found) > limit else None,
        )

    def job(self, job_id: str) -> JobDetail:
        """One job with bodies and history; raises ``JobNotFoundError``."""
        store = self._store

        def look(tables: Tables) -> tuple[tuple[int, Row] | None, Tables]:
            return tables.find(job_id), tables

        found, tables = store.look(look)
        if found is None:
            msg = f"No job {job_id!r} is in the store."
            raise JobNotFoundError(msg)
        position, row = found
        records = list(history.backwards(store, row))[::-1]
        return JobDetail(
            job=self._view(position, row, tables),
            payload=history.payload(store, row) or b"",
            result=history.result(store, row),
            history=tuple(attempts(records)),
        )

    def _view(self, position: int, row: Row, tables: Tables) -> JobView:
        error, reason = None, ""
        if row.error:
            found = history.failure_at(self._store, row.error)
            error, reason = (as_error(found[0]), found[1]) if found else (_DAMAGED, "")
        return JobView(
            id=row.id,
            position=position,
            queue=tables.names.queues[row.queue],
            kind=tables.names.kinds[row.kind] or None,
            state=_STATES[row.state],
            priority=row.priority,
            attempts=row.attempts,
            max_attempts=row.max_attempts,
            enqueued_at=row.enqueued_at,
            available_at=row.available_at,
            started_at=row.started_at or None,
            last_attempted_at=row.attempted_at or None,
            finished_at=row.finished_at or None,
            error=error,
            reason=reason,
        )

    # --- acting ------------------------------------------------------------------

    def requeue(self, job_ids: Iterable[str], *, by: str = "") -> Requeued:
        """Make dead jobs ready again, attempts reset, history kept."""
        return self._move(job_ids, settle.requeue, by, "it is not dead")

    def discard(self, job_ids: Iterable[str], *, by: str = "") -> Requeued:
        """Throw dead or ready jobs away; their history stays readable."""
        return self._move(job_ids, settle.discard, by, "it is neither dead nor ready")

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

        positions = self._store.look(look)
        moved = set(
            verb(
                self._store,
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
        store = self._store
        found = []
        if store.failed:
            found.append(
                Problem(
                    text="A sync of the log failed, so nothing is acknowledged any more.",
                    hint="Check the disk, then remount it or restart the machine.",
                )
            )
        damage = store.look(lambda tables: list(tables.meta.damage))
        if damage:
            count = len(damage)
            found.append(
                Problem(
                    text=f"{count} damaged range(s) of the log hold no readable record.",
                    hint="Check the disk; the bytes are kept in the store's set-aside folder.",
                )
            )
        return found
