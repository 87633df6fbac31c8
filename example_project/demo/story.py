"""The demo from beginning to end: the order of its steps, and what ends it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import TextIO

from demo.failure import DemoError
from demo.report import Report
from demo.stage import Stage
from demo.steps import closing, crash, dead_letters, members, opening, payments, photos

Step = Callable[[Stage], str]

STEPS: tuple[tuple[str, Step], ...] = (
    ("A fresh database is made", opening.make_database),
    ("A superuser gets a random password", opening.make_superuser),
    ("The web server answers", opening.start_site),
    ("A worker starts", opening.start_worker),
    ("alder, birch, cedar and willow sign up", members.sign_everybody_up),
    ("Their welcome mails are sent", members.receive_mails),
    ("alder uploads the sample photos", photos.upload_everything),
    ("Thumbnails of the whole photos are made", photos.see_thumbnails),
    ("The damaged photo fails for good", photos.see_damage),
    ("All four pay", payments.pay),
    ("Three payments are collected", payments.collect),
    ("The payment of willow fails for good", payments.fail),
    ("The superuser logs in to the admin", dead_letters.log_in),
    ("The queues in the admin add up", dead_letters.see_queues),
    ("The dead letters say why", dead_letters.see_dead_letters),
    ("The payment service is repaired", payments.repair),
    ("The dead payment is requeued in the admin", dead_letters.requeue),
    ("The payment of willow is collected", payments.collect_at_last),
    ("The worker is killed in the middle of a job", crash.kill_worker),
    ("elm signs up while no worker runs", members.sign_up_without_worker),
    ("Another worker does both jobs", crash.finish),
    ("elm has a mail, too", members.receive_mails),
    ("Every job is done or dead, none is lost", closing.balance),
)


def run(out: TextIO, *, keep: bool = False, port: int | None = None) -> None:
    """Play all steps; with ``keep``, leave the site running until Ctrl-C.

    Raises :class:`DemoError` at the first step that does not turn out as it should.
    Every process is stopped at the end, whatever the end is.
    """
    # However the demo is ended, its processes end with it.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    report = Report(len(STEPS), out)
    stage = Stage.prepared(port)
    begun = time.monotonic()
    try:
        play(stage, report)
        report.say(f"All as it should be, in {time.monotonic() - begun:.0f} seconds.")
        if keep:
            stay(stage, report)
        stage.stop()
    except DemoError:
        stage.kill()
        explain(stage, report)
        raise
    except BaseException:
        # Nobody who ends the demo waits for its jobs.
        stage.kill()
        stage.workspace.remove()
        raise
    stage.workspace.remove()


def play(stage: Stage, report: Report) -> None:
    """Play the steps, one line each."""
    for title, step in STEPS:
        with report.step(title) as said:
            said.append(step(stage))


def stay(stage: Stage, report: Report) -> None:
    """Say where everything is, and wait for Ctrl-C."""
    report.say()
    report.say(f"The site:      {stage.site}")
    report.say(f"Its admin:     {stage.site}admin/")
    report.say(f"User name:     {stage.staff_name}")
    report.say(f"Password:      {stage.staff_password}")
    report.say(f"What it wrote: {stage.workspace.shown} (removed at the end)")
    report.say()
    report.say("Press Ctrl-C to stop the site and the worker.")
    try:
        while True:
            for process in stage.processes:
                process.check()
            time.sleep(0.5)
    except KeyboardInterrupt:
        report.say("\nStopped.")


def explain(stage: Stage, report: Report) -> None:
    """Show the last words of the processes, and where the rest is."""
    for log in sorted(stage.workspace.path.glob("*.log")):
        lines = log.read_text(errors="replace").splitlines()[-15:]
        report.say(f"\n--- the end of {log.name} ---")
        report.say("\n".join(lines))
    report.say(f"\nEverything it wrote is kept in {stage.workspace.shown}.")
