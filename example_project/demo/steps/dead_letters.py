"""The staff looks at the queues and the dead letters in the admin."""

from __future__ import annotations

from urllib.parse import quote

from demo.browser import Browser
from demo.failure import DemoError, expect
from demo.stage import Stage
from demo.steps.payments import UNLUCKY
from demo.steps.photos import DAMAGED

QUEUES = "admin/django_nobroker/queue/"
DEAD_LETTERS = "admin/django_nobroker/deadjob/"
STATES = ("Ready", "Delayed", "Running", "Done", "Dead")

Counts = dict[str, dict[str, int]]  # by queue, then by state


def log_in(stage: Stage) -> str:
    """Log in to the admin with the random password."""
    stage.staff = Browser(stage.site)
    page = stage.staff.get("admin/")
    fields = {"username": stage.staff_name, "password": stage.staff_password}
    index = stage.staff.submit(page, page.form(*fields), fields)
    expect(
        "django_nobroker/queue/" in index.text, "The admin does not show the queues."
    )
    return f"{stage.site}admin/"


def counts(stage: Stage) -> Counts:
    """Return the figures of the queues' page."""
    rows = stage.admin.get(QUEUES).rows("Queue")
    return {
        row["Queue"]: {state: int(row[state]) for state in STATES}
        for row in rows
        if row["Queue"] != "All queues"
    }


def see_queues(stage: Stage) -> str:
    """Compare the figures with what was enqueued."""
    found = {queue: (row["Done"], row["Dead"]) for queue, row in counts(stage).items()}
    expected = {
        "emails": (len(stage.welcomes), 0),
        "payments": (len(stage.payments) - 1, 1),
        "thumbnails": (len(stage.uploads) - 1, 1),
    }
    expect(found == expected, f"The queues show {found} instead of {expected}.")
    return ", ".join(
        f"{queue}: {done} done {dead} dead" for queue, (done, dead) in found.items()
    )


def dead_letters(stage: Stage) -> dict[str, str]:
    """Return the error of every dead letter, by job."""
    rows = stage.admin.get(DEAD_LETTERS).rows("Job")
    return {row["Job"]: row["Error"] for row in rows}


def see_dead_letters(stage: Stage) -> str:
    """Find the two dead letters, and read the reasons on their pages."""
    letters = dead_letters(stage)
    reasons = {
        stage.payments[UNLUCKY]: ("BankSilentError", f"The bank of {UNLUCKY} does not"),
        stage.uploads[DAMAGED].job: (
            "DamagedPhotoError",
            "This is not a whole picture",
        ),
    }
    expect(
        letters.keys() == reasons.keys(),
        f"The dead letters are {sorted(letters)} instead of {sorted(reasons)}.",
    )
    for job, (kind, reason) in reasons.items():
        expect(
            kind in letters[job], f"The list does not say {kind} but {letters[job]}."
        )
        detail = stage.admin.get(f"{DEAD_LETTERS}{quote(job, safe='')}/").text
        expect(kind in detail, f"The page of {job} does not name {kind}.")
        expect(reason in detail, f"The page of {job} does not say why it died.")
    return " and ".join(kind for kind, _ in reasons.values())


def requeue(stage: Stage) -> str:
    """Tick the dead payment, press Requeue, and confirm."""
    job = stage.payments[UNLUCKY]
    page = stage.admin.get(DEAD_LETTERS)
    ticked = {"_selected_action": job}
    form = page.form("_selected_action", "action")
    question = stage.admin.submit(page, form, ticked, press="action=requeue")
    if job not in question.text:
        raise DemoError("The admin does not ask for a confirmation.")
    answer = question.form("confirm", "_selected_action")
    stage.admin.submit(question, answer, {})
    expect(job not in dead_letters(stage), "It is still among the dead letters.")
    return "with its confirmation"
