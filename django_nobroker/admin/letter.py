"""One dead letter in full: why it died, its arguments and each of its attempts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from django_nobroker.seam import AttemptView, Error, JobDetail

from .moments import duration, moment
from .text import visible, visible_ends

ATTEMPTS_MAX = 50  # a job that was requeued for months has more than a page takes
MESSAGE_MAX = 5_000  # characters
TRACEBACK_MAX = 50_000  # characters

REASONS: dict[str, str | Promise] = {
    "attempts": _("All its attempts failed."),
    "rejected": _("The task rejected it."),
    "not retried": _("It failed with an error that is not retried."),
    "lost": _("Its worker was lost during the last attempt."),
    "unreadable": _("Its record in the log is damaged."),
    "undecodable": _("Its payload cannot be decoded."),
    "unknown task": _("Its task does not exist in the code any more."),
    "wrong payload": _("Its payload is not that of a task."),
    "wrong arguments": _("Its task does not take these arguments."),
    "wrong result": _("Its task returned what cannot be written as JSON."),
}
OUTCOMES: dict[str, str | Promise] = {
    "running": _("running"),
    "done": _("succeeded"),
    "failed": _("failed"),
    "lost": _("worker lost"),
    "released": _("given back, not counted"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownError:
    """An error, cut to what a page can hold."""

    type: str
    message: str
    traceback: str

    @classmethod
    def of(cls, error: Error | None) -> ShownError | None:
        """Return ``error`` made fit for a page."""
        if error is None:
            return None
        return cls(
            type=visible(error.type),
            message=visible_ends(error.message, MESSAGE_MAX),
            traceback=visible_ends(error.traceback, TRACEBACK_MAX),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAttempt:
    """One delivery as a row of the timeline."""

    number: int
    worker: str
    started_at: datetime | None
    took: str
    outcome: str | Promise
    failed: bool
    error: ShownError | None

    @classmethod
    def of(cls, attempt: AttemptView) -> ShownAttempt:
        """Return ``attempt`` made fit for a page."""
        return cls(
            number=attempt.number,
            worker=visible(attempt.worker),
            started_at=moment(attempt.started_at),
            took=duration(attempt.started_at, attempt.finished_at),
            outcome=OUTCOMES.get(attempt.outcome) or visible(attempt.outcome),
            failed=attempt.outcome in {"failed", "lost"},
            error=ShownError.of(attempt.error),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """Everything about a dead job that needs no further permission."""

    id: str
    shown_id: str
    task: str
    queue: str
    priority: int
    attempts: int
    max_attempts: int
    enqueued_at: datetime | None
    died_at: datetime | None
    reason: str | Promise
    error: ShownError | None
    timeline: tuple[ShownAttempt, ...]
    left_out: int  # attempts before the first one shown

    @classmethod
    def of(cls, detail: JobDetail) -> Letter:
        """Return ``detail`` made fit for a page, the latest attempts if many."""
        job, history = detail.job, detail.history
        return cls(
            id=job.id,
            shown_id=visible(job.id),
            task=visible(job.kind or ""),
            queue=visible(job.queue),
            priority=job.priority,
            attempts=job.attempts,
            max_attempts=job.max_attempts,
            enqueued_at=moment(job.enqueued_at),
            died_at=moment(job.finished_at),
            reason=REASONS.get(job.reason) or visible(job.reason),
            error=ShownError.of(job.error),
            timeline=tuple(map(ShownAttempt.of, history[-ATTEMPTS_MAX:])),
            left_out=max(0, len(history) - ATTEMPTS_MAX),
        )
