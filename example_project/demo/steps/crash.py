"""A worker is killed in the middle of a job, and another one does the job."""

from __future__ import annotations

from demo.failure import expect
from demo.stage import Stage
from demo.steps.members import LATE_MEMBER
from demo.steps.photos import PHOTOGRAPHER, SIZES, measured, upload
from demo.workspace import SAMPLE_PHOTOS

SLOW = "slow"  # the name of this upload, beside those of the files
PHOTO = "sunset-sea.jpg"


def thumbnails(stage: Stage) -> int:
    """Return how many thumbnails the page of the slow photo lists."""
    page = stage.members[PHOTOGRAPHER].get(stage.uploads[SLOW].path)
    return sum(f">{size}</a>" in page.text for size in SIZES)


def kill_worker(stage: Stage) -> str:
    """Upload a photo whose thumbnails take their time; kill the worker meanwhile."""
    slow = upload(stage, SAMPLE_PHOTOS / PHOTO, "Sunset, slowly", slowly=True)
    stage.uploads[SLOW] = slow
    stage.until("the first of the thumbnails", lambda: thumbnails(stage))
    stage.until_jobs("the running job", [slow.job], "running")
    pid = stage.kill_worker()
    made = thumbnails(stage)
    expect(made < len(SIZES), "The job was done before the worker could be killed.")
    return f"kill -9 {pid}, {made} of {len(SIZES)} thumbnails made"


def finish(stage: Stage) -> str:
    """Start another worker, which does what was left lying."""
    worker = stage.start_worker()
    jobs = [stage.uploads[SLOW].job, stage.welcomes[LATE_MEMBER]]
    stage.until_jobs("the jobs that were left", jobs, "done")
    measured(stage, SLOW)
    return f"process {worker.pid}, when the lease of the dead one had run out"
