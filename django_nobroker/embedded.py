"""The embedded log as an engine: the seam's questions, asked of a store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from .engine import enqueue, history, listing, segment, settle
from .engine.enqueue import Duplicate
from .engine.errors import JobNotFoundError
from .engine.shared import close_store, open_store
from .engine.store import Store
from .engine.tables import Tables
from .engine.vfs import Access
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
from .worker.loop import Loop, StoreOptions

if TYPE_CHECKING:
    from .options import Options

T = TypeVar("T")

_LOCK_TIMEOUT = 10.0
_FAILED = Problem(
    text="A sync of the log failed, so nothing is acknowledged any more.",
    hint="Check the disk, then remount it or restart the machine.",
)
_TORN_HINT = "The next process that writes cuts them off and keeps a copy in set-aside."
_DAMAGE_HINT = "Check the disk; what can be read around them stays in use."


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
        """The store, open for writing; made if it is missing."""
        store = self._opened
        if store is None or store.closed or not store.is_writable:
            store = self._open(read_only=False)
        return store

    def _open(self, *, read_only: bool) -> Store:
        with self._mutex:
            store = self._opened
            if store is None or store.closed:
                options = self._options
                index = options.index_directory
                store = self._opened = open_store(
                    options.directory,
                    read_only=read_only,
                    access=Access.of(options.file_mode, options.group),
                    index_root=None if index is None else str(index),
                )
            elif not read_only:
                store.open_to_write()
            return store

    def _look(self, action: Callable[[Store, Tables], T], nothing: T) -> T:
        """Return what an action sees; ``nothing`` where no store was made yet.

        Looking makes and repairs nothing, and takes no lock of the store.
        """
        store = self._opened
        if store is None or store.closed:
            if not segment.is_there(str(self._options.directory)):
                return nothing
            store = self._open(read_only=True)
        return store.look(lambda tables: action(store, tables))

    def close(self) -> None:
        """Give the store back; the next question opens it again."""
        with self._mutex:
            store, self._opened = self._opened, None
            if store is not None:
                close_store(store)

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

        def look(store: Store, tables: Tables) -> list[QueueCounts]:
            expired = tables.expired(store.clock.boot())
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

        return self._look(look, [])

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

        return self._look(look, Page(jobs=()))

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

        detail = self._look(look, None)
        if detail is None:
            raise JobNotFoundError(f"No job {job_id!r} is in the store.")
        return detail

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

        def look(store: Store, tables: Tables) -> list[Problem]:
            found = []
            if store.failed:
                found.append(_FAILED)
            if store.torn:
                text = f"{store.torn} bytes at the end of the log are unfinished."
                found.append(Problem(text=text, hint=_TORN_HINT))
            if tables.meta.damage:
                text = f"{len(tables.meta.damage)} range(s) of the log are unreadable."
                found.append(Problem(text=text, hint=_DAMAGE_HINT))
            return found

        return self._look(look, [])
