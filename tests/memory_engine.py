"""An engine that keeps its jobs in a dictionary: a fast double behind the seam.

It has no disk and no second process, so nothing survives it and no lease of a dead
worker ever expires; in everything else it follows ``seam.Engine``, as the conformance
suite shows.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from django_nobroker.exceptions import JobNotFoundError, NotLeasedError, QueueFull
from django_nobroker.options import Options
from django_nobroker.seam import (
    Attempt,
    AttemptView,
    Dead,
    Done,
    Enqueued,
    Error,
    Execute,
    JobDetail,
    JobView,
    NewJob,
    Outcome,
    Page,
    Problem,
    QueueCounts,
    Requeued,
    Retry,
    Settled,
    State,
    WorkerOptions,
    WorkerStats,
)

OPEN = (State.READY, State.LEASED)


@dataclass
class Job:
    view: JobView
    payload: bytes
    result: bytes | None = None
    history: list[AttemptView] = field(default_factory=list)
    token: int = 0
    is_retry: bool = False


class MemoryEngine:
    capabilities = frozenset({"extend"})

    def __init__(self, options: Options) -> None:
        self.options = options
        self.changed = threading.Condition()
        self.stored: dict[str, Job] = {}
        self.numbers = itertools.count(1)
        self.extensions: list[float] = []

    def enqueue_many(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        with self.changed:
            self.check_room(jobs)
            answers = [self.enqueue(job) for job in jobs]
            self.changed.notify_all()
            return answers

    def check_room(self, jobs: Sequence[NewJob]) -> None:
        for queue in {job.queue for job in jobs}:
            limit = self.options.for_queue(queue).max_pending
            more = sum(job.queue == queue for job in jobs)
            here = sum(
                job.view.queue == queue and job.view.state in OPEN
                for job in self.stored.values()
            )
            if limit is not None and here + more > limit:
                raise QueueFull(f"Queue {queue!r} holds {here} jobs.")

    def enqueue(self, new: NewJob) -> Enqueued:
        job_id = new.job_id or uuid.uuid4().hex
        if known := self.stored.get(job_id):
            at = known.view.enqueued_at
            return Enqueued(id=job_id, enqueued_at=at, created=False)
        now = time.time()
        view = JobView(
            id=job_id,
            position=next(self.numbers),
            queue=new.queue,
            kind=new.kind,
            state=State.READY,
            priority=new.priority,
            attempts=0,
            max_attempts=new.max_attempts,
            enqueued_at=now,
            available_at=max(now, new.run_at or 0.0),
        )
        self.stored[job_id] = Job(view=view, payload=new.payload)
        return Enqueued(id=job_id, enqueued_at=now)

    def run_worker(
        self,
        execute: Execute,
        options: WorkerOptions,
        *,
        stop: threading.Event,
        on_start: Callable[[Attempt], None],
        on_settled: Callable[[Settled], None],
    ) -> WorkerStats:
        crew = Crew(self, execute, options, stop, on_start, on_settled)
        return crew.run()

    def counts(self) -> list[QueueCounts]:
        now = time.time()
        with self.changed:
            views = [job.view for job in self.stored.values()]
        rows = []
        for queue in sorted({view.queue for view in views}):
            here = [view for view in views if view.queue == queue]
            ready = [view for view in here if view.state is State.READY]
            due = [view.available_at for view in ready if view.available_at <= now]
            states = [view.state for view in here]
            rows.append(
                QueueCounts(
                    queue=queue,
                    ready=len(due),
                    delayed=len(ready) - len(due),
                    leased=states.count(State.LEASED),
                    done=states.count(State.DONE),
                    dead=states.count(State.DEAD),
                    oldest_ready_at=min(due, default=None),
                )
            )
        return [row for row in rows if row != QueueCounts(queue=row.queue)]

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
        with self.changed:
            views = [job.view for job in self.stored.values()]
        views.sort(key=lambda view: view.position, reverse=newest_first)
        found = [
            view
            for view in views
            if state in (None, view.state)
            and queue in (None, view.queue)
            and kind in (None, view.kind)
            and (after is None or (view.position < after) == newest_first)
            and view.position != after
        ]
        shown = tuple(found[:limit])
        return Page(jobs=shown, next=shown[-1].position if len(found) > limit else None)

    def job(self, job_id: str) -> JobDetail:
        with self.changed:
            job = self.stored.get(job_id)
            if job is None:
                raise JobNotFoundError(f"No job {job_id!r} is in the store.")
            return JobDetail(
                job=job.view,
                payload=job.payload,
                result=job.result,
                history=tuple(job.history),
            )

    def requeue(self, job_ids: Iterable[str], *, by: str = "") -> Requeued:
        return self.move(
            job_ids,
            (State.DEAD,),
            state=State.READY,
            attempts=0,
            finished_at=None,
            reason="",
            available_at=time.time(),
        )

    def discard(self, job_ids: Iterable[str], *, by: str = "") -> Requeued:
        return self.move(
            job_ids,
            (State.DEAD, State.READY),
            state=State.DISCARDED,
            finished_at=time.time(),
        )

    def move(self, job_ids, states, **changes) -> Requeued:
        moved, skipped = [], {}
        with self.changed:
            for job_id in job_ids:
                job = self.stored.get(job_id)
                if job is None:
                    skipped[job_id] = "there is no such job"
                elif job.view.state not in states:
                    skipped[job_id] = f"it is {job.view.state}"
                else:
                    job.view = replace(job.view, **changes)
                    moved.append(job_id)
            self.changed.notify_all()
        return Requeued(requeued=tuple(moved), skipped=skipped)

    def problems(self) -> list[Problem]:
        return []

    def close(self) -> None:
        """Nothing is open."""


class Crew:
    """One run of a worker: its threads, and what they may still begin."""

    def __init__(self, engine, execute, options, stop, on_start, on_settled) -> None:
        self.engine = engine
        self.execute = execute
        self.options = options
        self.stop = stop
        self.on_start = on_start
        self.on_settled = on_settled
        self.held: dict[int, Job] = {}
        self.tally = dict.fromkeys(WorkerStats.__slots__, 0)
        self.is_over = False
        self.last_work = time.monotonic()

    def run(self) -> WorkerStats:
        threads = [
            threading.Thread(target=self.work, daemon=True)
            for _ in range(self.options.concurrency)
        ]
        for thread in threads:
            thread.start()
        deadline = None
        while any(thread.is_alive() for thread in threads):
            threads[0].join(0.01)
            if self.stop.is_set() and deadline is None:
                grace = self.options.grace
                deadline = time.monotonic() + (1e9 if grace is None else grace)
            if deadline is not None and time.monotonic() >= deadline:
                break
        with self.engine.changed:
            self.is_over = True
            for job in self.held.values():
                self.release(job)
            return WorkerStats(**self.tally)

    def release(self, job: Job) -> None:
        job.token = next(self.engine.numbers)
        now = time.time()
        job.history[-1] = replace(job.history[-1], outcome="released", finished_at=now)
        job.view = replace(
            job.view,
            state=State.READY,
            attempts=job.view.attempts - 1,
            available_at=now,
        )

    def work(self) -> None:
        while True:
            with self.engine.changed:
                claimed = self.claim()
                if claimed is None:
                    if self.is_enough():
                        return
                    self.engine.changed.wait(0.01)
                    continue
            self.run_one(*claimed)

    def is_enough(self) -> bool:
        options = self.options
        if self.stop.is_set() or self.is_over:
            return True
        if options.max_jobs is not None and self.tally["leased"] >= options.max_jobs:
            return True
        if self.held:
            return False
        if options.batch:
            return True
        if any(
            job.is_retry and job.view.state is State.READY and self.is_mine(job)
            for job in self.engine.stored.values()
        ):
            self.last_work = time.monotonic()
        idle = time.monotonic() - self.last_work
        return options.idle_timeout is not None and idle >= options.idle_timeout

    def is_mine(self, job: Job) -> bool:
        queue = job.view.queue
        chosen = not self.options.queues or queue in self.options.queues
        return chosen and queue not in self.options.exclude

    def claim(self) -> tuple[Job, int] | None:
        options = self.options
        if self.stop.is_set() or self.is_over:
            return None
        if options.max_jobs is not None and self.tally["leased"] >= options.max_jobs:
            return None
        now = time.time()
        due = [
            job
            for job in self.engine.stored.values()
            if job.view.state is State.READY
            and job.view.available_at <= now
            and self.is_mine(job)
        ]
        if not due:
            return None
        job = min(
            due,
            key=lambda job: (
                -job.view.priority,
                job.view.available_at,
                job.view.position,
            ),
        )
        number = job.view.attempts + 1
        job.view = replace(
            job.view,
            state=State.LEASED,
            attempts=number,
            started_at=job.view.started_at or now,
            last_attempted_at=now,
        )
        job.history.append(
            AttemptView(
                number=number,
                worker=options.worker_id,
                started_at=now,
                finished_at=None,
                outcome="running",
            )
        )
        job.token = next(self.engine.numbers)
        self.held[job.token] = job
        self.tally["leased"] += 1
        return job, job.token

    def run_one(self, job: Job, token: int) -> None:
        view = job.view
        attempt = Attempt(
            id=view.id,
            queue=view.queue,
            kind=view.kind,
            payload=job.payload,
            number=view.attempts,
            max_attempts=view.max_attempts,
            priority=view.priority,
            enqueued_at=view.enqueued_at,
            worker=self.options.worker_id,
            extend=lambda seconds: self.extend(job, token, seconds),
        )
        self.on_start(attempt)
        try:
            outcome = self.execute(attempt)
        except BaseException as error:
            name = type(error).__qualname__
            outcome = Retry(error=Error(type=name, message=str(error)))
        settled = self.settle(job, token, attempt, outcome)
        if settled is not None:
            self.on_settled(settled)

    def extend(self, job: Job, token: int, seconds: float) -> None:
        if job.token != token:
            raise NotLeasedError(f"The lease of job {job.view.id} is gone.")
        self.engine.extensions.append(seconds)

    def settle(
        self, job: Job, token: int, attempt: Attempt, outcome: Outcome
    ) -> Settled | None:
        with self.engine.changed:
            self.held.pop(token, None)
            self.last_work = time.monotonic()
            self.engine.changed.notify_all()
            if self.is_over and job.token != token:
                return None
            if job.token != token:
                self.tally["lost_leases"] += 1
                return Settled(attempt=attempt, outcome=outcome, state=None)
            job.token = next(self.engine.numbers)
            return self.record(job, attempt, outcome)

    def record(self, job: Job, attempt: Attempt, outcome: Outcome) -> Settled:
        now = time.time()
        ended = replace(job.history[-1], finished_at=now)
        if isinstance(outcome, Done):
            self.tally["succeeded"] += 1
            job.history[-1] = replace(ended, outcome="done")
            job.result = outcome.result
            job.view = replace(job.view, state=State.DONE, finished_at=now)
            return Settled(attempt=attempt, outcome=outcome, state=State.DONE)
        self.tally["failed"] += 1
        job.history[-1] = replace(ended, outcome="failed", error=outcome.error)
        job.view = replace(job.view, error=outcome.error)
        if isinstance(outcome, Dead) or attempt.number >= attempt.max_attempts:
            self.tally["dead"] += 1
            reason = outcome.reason if isinstance(outcome, Dead) else "attempts"
            job.view = replace(
                job.view, state=State.DEAD, finished_at=now, reason=reason
            )
            return Settled(attempt=attempt, outcome=outcome, state=State.DEAD)
        delay = outcome.delay
        if delay is None:
            backoff = self.engine.options.for_queue(attempt.queue).backoff
            delay = backoff.delay(attempt.number)
        job.is_retry = True
        job.view = replace(job.view, state=State.READY, available_at=now + delay)
        return Settled(attempt=attempt, outcome=outcome, state=State.READY, delay=delay)
