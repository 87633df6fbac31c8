"""A worker that says when each job began; it polls far more rarely than that.

Usage: ``python -m tests.campaigns.listener STORE``. Lines: ``ready``, then
``began NUMBER NANOSECONDS`` on the monotonic clock, which all processes share.
"""

from __future__ import annotations

import sys
import time

from django_nobroker import Job, Queue, Worker
from tests.campaigns.witness import say

POLL_INTERVAL = 5.0


def main(store: str) -> None:
    """Work until killed."""

    def handle(job: Job[int]) -> None:
        say("began", job.payload, time.monotonic_ns())

    with Queue[int](store) as queue:
        say("ready")
        Worker(queue, handle, poll_interval=POLL_INTERVAL).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
