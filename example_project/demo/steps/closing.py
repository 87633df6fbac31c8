"""The books are balanced: every job that was enqueued is done or dead."""

from __future__ import annotations

from demo.failure import expect
from demo.stage import Stage
from demo.steps.dead_letters import STATES, counts
from demo.steps.photos import DAMAGED


def balance(stage: Stage) -> str:
    """Compare every job that was enqueued with the figures of the queues' page."""
    dead = [stage.uploads[DAMAGED].job]
    done = [job for job in stage.jobs if job not in dead]
    stage.until_jobs("every job", done, "done")
    stage.until_jobs("the dead letter", dead, "failed")
    rows = counts(stage).values()
    total = {state: sum(row[state] for row in rows) for state in STATES}
    expected = {"Ready": 0, "Delayed": 0, "Running": 0}
    expected |= {"Done": len(done), "Dead": len(dead)}
    expect(total == expected, f"The queues hold {total} instead of {expected}.")
    return f"{len(stage.jobs)} enqueued = {total['Done']} done + {total['Dead']} dead"
