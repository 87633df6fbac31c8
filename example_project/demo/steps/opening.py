"""The site is set up and started."""

from __future__ import annotations

import secrets

from demo.browser import Browser
from demo.failure import DemoError
from demo.stage import Stage


def make_database(stage: Stage) -> str:
    """Make a fresh database."""
    stage.workspace.run("migrate", "--verbosity", "0")
    return f"in {stage.workspace.shown}"


def make_superuser(stage: Stage) -> str:
    """Make the account of the staff."""
    stage.staff_password = secrets.token_urlsafe(12)
    stage.workspace.run(
        "createsuperuser",
        "--noinput",
        "--username",
        stage.staff_name,
        "--email",
        "admin@lantern.example",
        DJANGO_SUPERUSER_PASSWORD=stage.staff_password,
    )
    return stage.staff_name


def start_site(stage: Stage) -> str:
    """Start the web server, and wait for its first page."""
    address = f"127.0.0.1:{stage.port}"
    stage.start("web server", "runserver", "--noreload", address)

    def answers() -> bool:
        try:
            return "Become a member" in Browser(stage.site).get("").text
        except DemoError:
            return False  # It is still starting; if it ends, that is noticed.

    stage.until("the home page", answers)
    return stage.site


def start_worker(stage: Stage) -> str:
    """Start a worker for all queues, and wait for its first word."""
    worker = stage.start_worker()
    stage.until("a line from the worker", lambda: worker.log.stat().st_size)
    return f"runworker, process {worker.pid}"
