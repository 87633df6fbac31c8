"""Says how a background job is doing, in words for a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import django

if TYPE_CHECKING or django.VERSION >= (6, 0):
    from django.tasks import TaskResultStatus, default_task_backend
    from django.tasks.exceptions import TaskResultDoesNotExist
else:
    from django_tasks import TaskResultStatus, default_task_backend
    from django_tasks.exceptions import TaskResultDoesNotExist

WORDS = {
    TaskResultStatus.READY: "waiting",
    TaskResultStatus.RUNNING: "running",
    TaskResultStatus.SUCCESSFUL: "done",
    TaskResultStatus.FAILED: "failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """How one job is doing.

    ``word`` is waiting, running, done, failed, or unknown: a finished job is
    forgotten after the RESULT_TTL of the queue.
    """

    id: str
    word: str
    failed_attempts: int = 0

    @property
    def is_open(self) -> bool:
        """Whether the job may still change."""
        return self.word in {"waiting", "running"}

    @property
    def text(self) -> str:
        """The word, and what was tried in vain so far."""
        match self.word, self.failed_attempts:
            case "waiting", 1:
                return "waiting for another try: the first one failed"
            case "waiting", failed if failed:
                return f"waiting for another try: {failed} failed"
            case "failed", failed if failed > 1:
                return f"failed {failed} times"
            case "done", failed if failed:
                return f"done at try {failed + 1}"
            case word, _:
                return word


def job_status(job_id: str) -> JobStatus:
    """Ask the queue about a job."""
    try:
        result = default_task_backend.get_result(job_id)
    except TaskResultDoesNotExist:
        return JobStatus(id=job_id, word="unknown")
    return JobStatus(
        id=job_id,
        word=WORDS[result.status],
        failed_attempts=len(result.errors),
    )
