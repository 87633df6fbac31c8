"""What the steps of the demo share: processes, visitors, and what they did."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from demo.browser import Browser
from demo.failure import DemoError
from demo.processes import Process, free_port
from demo.workspace import Workspace

PATIENCE = 60.0  # seconds; a slow machine is no failure, a stuck one is
LOOK_EVERY = 0.1  # seconds

Found = TypeVar("Found")


@dataclass(slots=True)
class Upload:
    """A photo that was uploaded: its page and the job of its thumbnails."""

    path: str
    job: str


@dataclass(slots=True)
class Stage:
    """The running site and everybody on it."""

    workspace: Workspace
    port: int
    staff_name: str = "admin"
    staff_password: str = ""
    processes: list[Process] = field(default_factory=list)
    worker: Process | None = None
    members: dict[str, Browser] = field(default_factory=dict)
    staff: Browser | None = None
    welcomes: dict[str, str] = field(default_factory=dict)  # job by member
    uploads: dict[str, Upload] = field(default_factory=dict)  # by file name
    payments: dict[str, str] = field(default_factory=dict)  # job by member

    @classmethod
    def prepared(cls, wanted_port: int | None) -> Stage:
        """Return an empty stage with a folder and a port."""
        port = free_port(wanted_port)
        return cls(Workspace.fresh(), port)

    @property
    def site(self) -> str:
        """The address of the site."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def jobs(self) -> list[str]:
        """The id of every job that was enqueued."""
        uploaded = [upload.job for upload in self.uploads.values()]
        return [*self.welcomes.values(), *uploaded, *self.payments.values()]

    @property
    def admin(self) -> Browser:
        """The browser of the staff; logged in from a step of its own on."""
        if self.staff is None:
            raise DemoError("Nobody of the staff has logged in yet.")
        return self.staff

    def start(self, name: str, *arguments: str, **environment: str) -> Process:
        """Start a command of the site that keeps running."""
        process = Process.start(
            name,
            self.workspace.command(*arguments),
            self.workspace.environment(**environment),
            self.workspace.log(name),
        )
        self.processes.append(process)
        return process

    def start_worker(self) -> Process:
        """Start a worker for all queues."""
        # Without DEBUG, as anywhere but on a developer's desk: nothing watches the
        # source files, and no query is remembered.
        self.worker = self.start(
            "worker", "runworker", "--concurrency", "2", PHOTO_CLUB_DEBUG="0"
        )
        return self.worker

    def kill_worker(self) -> int:
        """Kill the worker as a power cut would, and return its process id."""
        if self.worker is None:
            raise DemoError("There is no worker to kill.")
        self.worker.kill()
        self.processes.remove(self.worker)
        pid, self.worker = self.worker.pid, None
        return pid

    def stop(self) -> None:
        """Let every process end in order, the latest first.

        Whoever has no patience and presses Ctrl-C meanwhile leaves none behind.
        """
        try:
            for process in reversed(self.processes):
                process.stop()
        finally:
            self.kill()

    def kill(self) -> None:
        """End every process at once."""
        for process in self.processes:
            process.kill()
        self.processes.clear()

    def until(self, what: str, look: Callable[[], Found | None]) -> Found:
        """Look again and again until there is something to see; return it.

        Raises :class:`DemoError` when it takes too long, or when a process that
        should be running has ended.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            for process in self.processes:
                process.check()
            if found := look():
                return found
            if time.monotonic() > deadline:
                raise DemoError(f"Waited {PATIENCE:.0f} s in vain for {what}.")
            time.sleep(LOOK_EVERY)

    def until_jobs(self, what: str, ids: list[str], word: str) -> dict[str, int]:
        """Wait until all these jobs are in a state; return their failed attempts.

        Ends the demo as soon as one of them has finished otherwise.
        """
        query = "&".join(f"id={job}" for job in ids)

        def look() -> dict[str, int] | None:
            statuses = Browser(self.site).data(f"jobs/?{query}")
            for job, status in statuses.items():
                if not status["open"] and status["word"] != word:
                    raise DemoError(
                        f"{what}: job {job} is {status['text']}, not {word}."
                    )
            if any(status["word"] != word for status in statuses.values()):
                return None
            return {job: status["failed_attempts"] for job, status in statuses.items()}

        return self.until(what, look)
