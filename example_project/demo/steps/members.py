"""People become members, and a mail welcomes each of them."""

from __future__ import annotations

import secrets

from demo.browser import Browser
from demo.failure import DemoError, expect
from demo.stage import Stage

MEMBERS = ("alder", "birch", "cedar", "willow")
LATE_MEMBER = "elm"


def sign_up(stage: Stage, name: str) -> None:
    """Sign somebody up through the form, as a browser does."""
    browser = stage.members[name] = Browser(stage.site)
    password = secrets.token_urlsafe(12)
    page = browser.get("sign-up/")
    fields = {
        "username": name,
        "email": f"{name}@members.example",
        "password1": password,
        "password2": password,
    }
    home = browser.submit(page, page.form(*fields), fields)
    expect(f"Hello, {name}" in home.text, f"{name} could not sign up.")
    stage.welcomes[name] = home.new_job(stage.jobs)


def sign_everybody_up(stage: Stage) -> str:
    """Sign the first members up."""
    for name in MEMBERS:
        sign_up(stage, name)
    return f"{len(MEMBERS)} jobs enqueued"


def receive_mails(stage: Stage) -> str:
    """Wait for the mails, and find one for each member."""
    names = [*stage.members]
    jobs = [stage.welcomes[name] for name in names]
    stage.until_jobs("the welcome mails", jobs, "done")
    # Django names a file by the second, so two mails may share one.
    mails = "".join(path.read_text() for path in stage.workspace.mail.iterdir())
    for name in names:
        received = mails.count(f"\nTo: {name}@members.example\n")
        if received != 1:
            raise DemoError(f"There are {received} mails for {name} instead of one.")
        expect(f"Dear {name}," in mails, f"The mail for {name} has another text.")
    return f"{len(names)} mails in mail/"


def sign_up_without_worker(stage: Stage) -> str:
    """Sign somebody up while no worker runs: the page answers, the job waits."""
    sign_up(stage, LATE_MEMBER)
    job = stage.welcomes[LATE_MEMBER]
    stage.until_jobs("a waiting job", [job], "waiting")
    return "the page answered, the mail waits"
