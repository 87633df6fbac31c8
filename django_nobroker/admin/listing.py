"""One page of the list of dead letters: what was asked for, and the rows found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import QueryDict

from django_nobroker.seam import Engine, Error, JobView, QueueCounts, State

from .moments import moment
from .text import is_sendable, visible

KEY_MAX = 2**63  # positions are bytes in a log; no log is longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What the address asks for; ``after`` is the key of the page before."""

    queue: str = ""
    task: str = ""
    after: int | None = None
    bad_key: str = ""

    @classmethod
    def of(cls, query: QueryDict) -> Filter:
        """Read the filter from the address; a key that is none is reported."""
        text = query.get("after", "")
        after = (
            int(text)
            if text.isascii() and text.isdecimal() and len(text) < 20
            else None
        )
        if after is not None and after >= KEY_MAX:
            after = None
        return cls(
            queue=query.get("queue", ""),
            task=query.get("task", ""),
            after=after,
            bad_key=text if text and after is None else "",
        )

    @property
    def narrows(self) -> bool:
        """Tell whether it leaves some jobs out."""
        return bool(self.queue or self.task)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A dead letter as the list shows it."""

    id: str
    shown_id: str
    task_path: tuple[str, ...]  # the dotted path, taken apart at its dots
    queue: str
    attempts: int
    max_attempts: int
    died_at: datetime | None
    error: str
    is_sendable: bool  # else no link and no button can name it
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of rows, with what the filter can be set to."""

    jobs: tuple[JobView, ...]
    next: int | None
    queues: tuple[str, ...]
    tasks: tuple[str, ...]
    total: int | None  # of all pages; None if nobody counts it

    @classmethod
    def read(cls, engine: Engine, wanted: Filter, limit: int) -> Listing:
        """Read the newest ``limit`` dead letters after the key that pass the filter."""
        page = engine.jobs(
            state=State.DEAD,
            queue=wanted.queue or None,
            kind=wanted.task or None,
            after=wanted.after,
            limit=limit,
        )
        counts = engine.counts()
        return cls(
            jobs=page.jobs,
            next=page.next,
            queues=_queues(counts, wanted),
            tasks=tuple(sorted({job.kind for job in page.jobs if job.kind})),
            total=_total(counts, wanted),
        )


def _queues(counts: list[QueueCounts], wanted: Filter) -> tuple[str, ...]:
    """Return the queues to choose from: with dead letters, or chosen already."""
    names = {row.queue for row in counts if row.dead} | {wanted.queue}
    return tuple(sorted(filter(is_sendable, names)))


def _total(counts: list[QueueCounts], wanted: Filter) -> int | None:
    if wanted.task:
        return None
    return sum(row.dead for row in counts if wanted.queue in {"", row.queue})


def cause(error: Error | None, reason: str) -> str:
    """Return why a job died in one line: the error's last name and its message."""
    if error is None:
        return visible(reason)
    name = visible(error.type.rpartition(".")[2] or error.type, 80)
    return ": ".join(filter(None, (name, visible(error.message, 160))))


def row(job: JobView, url: str = "") -> Row:
    """Return how the list shows ``job``."""
    return Row(
        id=job.id,
        shown_id=visible(job.id),
        task_path=tuple(visible(job.kind).split(".")) if job.kind else (),
        queue=visible(job.queue),
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        died_at=moment(job.finished_at),
        error=cause(job.error, job.reason),
        is_sendable=is_sendable(job.id),
        url=url,
    )
