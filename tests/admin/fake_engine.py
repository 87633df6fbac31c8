"""An engine in memory with the parts of the seam that the admin's pages may use.

It does what the seam's docstrings say and nothing else. Whatever a page must not
ask of an engine fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from django_nobroker.compat import BaseTaskBackend
from django_nobroker.exceptions import JobNotFoundError
from django_nobroker.seam import (
    AttemptView,
    Enqueued,
    Error,
    JobDetail,
    JobView,
    NewJob,
    Page,
    Problem,
    QueueCounts,
    Requeued,
    State,
    WorkerStats,
)

NOW = 1_764_000_000.0
BOOM = Error(
    type="builtins.ValueError",
    message="boom",
    traceback="Traceback (most recent call last):\nValueError: boom\n",
)


class FakeEngine:
    """Jobs in a dictionary; ``acted`` tells who asked for what."""

    capabilities: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.details: dict[str, JobDetail] = {}
        self.listed_problems: list[Problem] = []
        self.oldest_ready_at: float | None = None
        self.acted: list[tuple[str, list[str], str]] = []
        self.refused: dict[str, str] = {}
        self.calls: list[str] = []

    # --- what a test prepares ------------------------------------------------

    def put(
        self,
        job_id: str,
        *,
        state: State = State.DEAD,
        queue: str = "default",
        kind: str | None = "tests.admin.tasks.charge",
        payload: bytes = b'{"args": [], "kwargs": {"order": 7}}',
        error: Error | None = BOOM,
        reason: str = "attempts",
        history: tuple[AttemptView, ...] | None = None,
        **fields,
    ) -> JobView:
        """Put a job there as it is."""
        values = {
            "priority": 0,
            "attempts": 5,
            "max_attempts": 5,
            "enqueued_at": NOW,
            "available_at": NOW,
            "finished_at": NOW + 60,
            **fields,
        }
        job = JobView(
            id=job_id,
            position=len(self.details) * 100,
            queue=queue,
            kind=kind,
            state=state,
            error=error,
            reason=reason,
            **values,
        )
        if history is None:
            history = (
                AttemptView(
                    number=1,
                    worker="host-1",
                    started_at=NOW + 59,
                    finished_at=NOW + 60,
                    outcome="failed",
                    error=error,
                ),
            )
        self.details[job_id] = JobDetail(job=job, payload=payload, history=history)
        return job

    def state(self, job_id: str) -> State:
        return self.details[job_id].job.state

    # --- the seam ------------------------------------------------------------

    def counts(self) -> list[QueueCounts]:
        jobs = [detail.job for detail in self.details.values()]
        return [
            QueueCounts(
                queue=name,
                oldest_ready_at=self.oldest_ready_at,
                **{
                    field: sum(job.queue == name and job.state is state for job in jobs)
                    for field, state in {
                        "ready": State.READY,
                        "leased": State.LEASED,
                        "done": State.DONE,
                        "dead": State.DEAD,
                    }.items()
                },
            )
            for name in sorted({job.queue for job in jobs})
        ]

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
        self.calls.append(f"jobs limit={limit}")
        assert newest_first
        found = [
            detail.job
            for detail in reversed(self.details.values())
            if (state is None or detail.job.state is state)
            and (queue is None or detail.job.queue == queue)
            and (kind is None or detail.job.kind == kind)
            and (after is None or detail.job.position < after)
        ]
        more = len(found) > limit
        found = found[:limit]
        return Page(jobs=tuple(found), next=found[-1].position if more else None)

    def job(self, job_id: str) -> JobDetail:
        try:
            return self.details[job_id]
        except KeyError:
            raise JobNotFoundError(f"no job {job_id!r}") from None

    def requeue(self, job_ids: Iterable[str], *, by: str = "") -> Requeued:
        return self._act("requeue", list(job_ids), by, {State.DEAD}, State.READY)

    def discard(self, job_ids: Iterable[str], *, by: str = "") -> Requeued:
        allowed = {State.DEAD, State.READY}
        return self._act("discard", list(job_ids), by, allowed, State.DISCARDED)

    def enqueue_many(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        raise AssertionError("a page of the admin enqueues nothing")

    def run_worker(self, execute, options, **callbacks) -> WorkerStats:
        raise AssertionError("a page of the admin runs nothing")

    def problems(self) -> list[Problem]:
        return self.listed_problems

    def _act(self, verb, job_ids, by, allowed, becomes) -> Requeued:
        self.acted.append((verb, job_ids, by))
        moved, skipped = [], {}
        for job_id in job_ids:
            detail = self.details.get(job_id)
            if job_id in self.refused:
                skipped[job_id] = self.refused[job_id]
            elif detail is None or detail.job.state not in allowed:
                skipped[job_id] = "cannot be moved"
            else:
                job = replace(detail.job, state=becomes)
                self.details[job_id] = replace(detail, job=job)
                moved.append(job_id)
        return Requeued(requeued=tuple(moved), skipped=skipped)


ENGINES: dict[str, FakeEngine | Exception] = {}


class FakeBackend(BaseTaskBackend):
    """A task backend whose engine is ``ENGINES[alias]``, or fails to open with it."""

    def enqueue(self, task, args, kwargs):
        raise AssertionError("a page of the admin enqueues nothing")

    @property
    def engine(self) -> FakeEngine:
        engine = ENGINES[self.alias]
        if isinstance(engine, Exception):
            raise engine
        return engine
