"""What the Django side may ask of an engine, and the values that travel across.

The backend, ``runworker``, the admin and the commands know an engine only by
the :class:`Engine` protocol. The embedded log is one (``embedded.py``); an
engine that owns its own worker loop can stand behind the same protocol. This
module holds no behaviour and imports neither Django nor an engine.

Times are float seconds since the epoch (wall clock); payloads, results and
errors are JSON text as bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from msgspec import Struct


class State(StrEnum):
    """The state of a job; a delayed job is a ready one that is not due yet."""

    READY = "ready"
    LEASED = "leased"
    DONE = "done"
    DEAD = "dead"
    DISCARDED = "discarded"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """One job to enqueue."""

    queue: str
    payload: bytes
    kind: str | None = None  # the task's path, for Django jobs
    priority: int = 0
    run_at: float | None = None  # wall-clock second; None or past = due now
    max_attempts: int = 5
    job_id: str | None = None  # None = the engine makes one


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """Why an attempt failed: texts only, never exception objects."""

    type: str  # dotted path of the exception class
    message: str
    traceback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One delivery of a job, read from its history."""

    number: int  # 1 = the first counted delivery
    worker: str
    started_at: float
    finished_at: float | None
    outcome: str  # running | done | failed | lost | released
    error: Error | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job as lists and pages show it, a detached snapshot."""

    id: str
    position: int  # the job's place in the order of enqueues; the paging key
    queue: str
    kind: str | None
    state: State
    priority: int
    attempts: int
    max_attempts: int
    enqueued_at: float
    available_at: float
    started_at: float | None = None  # of the first attempt
    last_attempted_at: float | None = None
    finished_at: float | None = None  # only when done, dead or discarded
    error: Error | None = None  # of the last failed attempt
    reason: str = ""  # why it is dead: "attempts", "rejected", "lost" ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail:
    """A job with what only its records hold: bodies and every attempt."""

    job: JobView
    payload: bytes
    result: bytes | None = None
    history: tuple[AttemptView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued:
    """The answer to one :class:`NewJob`; ``created`` is false for a duplicate id."""

    id: str
    enqueued_at: float
    created: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCounts:
    """How many jobs of one queue are in which state."""

    queue: str
    ready: int = 0  # due
    delayed: int = 0  # ready, but not due yet
    leased: int = 0
    done: int = 0
    dead: int = 0
    oldest_ready_at: float | None = (
        None  # wall time since when the oldest due job waits
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A slice of a list; ``next`` is the key of the following page or None."""

    jobs: tuple[JobView, ...]
    next: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeued:
    """What a requeue did: the ids moved, and those skipped with the reason."""

    requeued: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)


#: How bad a problem is: what needs somebody now, and what only should be known.
ERROR, WARNING = "error", "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One sentence about what is wrong, and the command or act that mends it."""

    text: str
    hint: str = ""
    severity: str = ERROR  # or WARNING


# --- running a job -----------------------------------------------------------


class Attempt(Struct, frozen=True, kw_only=True, eq=False):
    """One delivery handed to ``execute``; ``extend`` renews its lease by seconds.

    Like the other values of each single job it is a structure of msgspec's, which is
    made in a fifth of the time of a data class.
    """

    id: str
    queue: str
    kind: str | None
    payload: bytes
    number: int  # 1 = first run
    max_attempts: int
    priority: int
    enqueued_at: float
    worker: str
    extend: Callable[[float], None]
    held: object = None  # the engine's own proof of the lease


class Done(Struct, frozen=True, kw_only=True):
    """The attempt succeeded; ``result`` is kept with the job if given."""

    result: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """The attempt failed; try again after ``delay`` seconds (None = the backoff).

    The engine turns it into a dead job when the attempts are used up.
    """

    error: Error
    delay: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """The attempt failed for good; straight to the dead letters."""

    error: Error
    reason: str


Outcome = Done | Retry | Dead
Execute = Callable[[Attempt], Outcome]


class Settled(Struct, frozen=True, kw_only=True):
    """What became of an attempt, reported after it is on disk."""

    attempt: Attempt
    outcome: Outcome
    state: State | None  # None: the lease was lost, the outcome was discarded
    delay: float | None = None  # until the retry, in seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How a worker runs; the fields are the options of ``runworker``."""

    queues: Sequence[str] = ()  # empty = every queue
    exclude: Sequence[str] = ()
    concurrency: int = 1
    lease: float = 30.0  # the visibility timeout, seconds
    grace: float | None = None  # seconds to finish after a stop; None = no limit
    poll_interval: float = 1.0
    max_jobs: int | None = None
    idle_timeout: float | None = None
    batch: bool = False  # stop as soon as nothing is due
    worker_id: str = ""
    at_once: int = 64  # so many short jobs may be leased and settled together


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStats:
    """What a worker did; ``lost_leases`` above zero means work was done twice."""

    leased: int = 0
    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    lost_leases: int = 0


class Engine(Protocol):
    """All that the Django side may ask.

    Every method may raise an error of ``django_nobroker.exceptions``. Reading
    methods never repair and never take the write lock.
    """

    capabilities: frozenset[str]
    """What it can do beyond the rest: "pause", "extend", "records", ..."""

    def enqueue_many(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Enqueue all or none; durable when it returns."""

    def run_worker(
        self,
        execute: Execute,
        options: WorkerOptions,
        *,
        stop: threading.Event,
        on_start: Callable[[Attempt], None],
        on_settled: Callable[[Settled], None],
    ) -> WorkerStats:
        """Run jobs until ``stop`` is set or the options say so.

        ``execute`` is called in a worker thread, may raise anything (that is a
        failed attempt); ``on_start`` is called in that same thread before it, and
        ``on_settled`` after its outcome is recorded: maybe not before the next short
        jobs have ended, and in another thread if a long one came then. After ``stop``
        nothing more begins, what runs is finished for up to ``grace`` seconds, then
        given back without burning the attempt.
        """

    def counts(self) -> list[QueueCounts]:
        """One row per queue that holds a job, by name."""

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

    def job(self, job_id: str) -> JobDetail:
        """One job with bodies and history; raises ``JobNotFoundError``."""

    def requeue(self, job_ids: Iterable[str], *, by: str = "") -> Requeued:
        """Make dead jobs ready again, attempts reset, history kept."""

    def discard(self, job_ids: Iterable[str], *, by: str = "") -> Requeued:
        """Throw dead or ready jobs away; their history stays readable."""

    def problems(self) -> list[Problem]:
        """What is wrong with the store right now; empty when all is well."""
