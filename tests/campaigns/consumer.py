"""A process that works until it is killed, or, with ``drain``, until all is done.

Usage: ``python -m tests.campaigns.consumer STORE [drain]``. Lines: ``ready PID``, then
``began ID ATTEMPT`` and ``ended ID ATTEMPT`` around each handler that returned.
"""

from __future__ import annotations

import os
import random
import sys
import time

from django_nobroker import BackoffPolicy, Job, Queue, Worker
from tests.campaigns.witness import say

#: Short, so that the jobs of a killed worker are back within the campaign.
LEASE = 1.0


def main(store: str, drain: str = "") -> None:
    """Work in two threads; one job of ten fails."""
    chance = random.Random()

    def handle(job: Job[object]) -> None:
        say("began", job.id, job.attempts)
        time.sleep(chance.random() / 200)
        if chance.randrange(10) == 0:
            raise RuntimeError("it happens")
        say("ended", job.id, job.attempts)

    backoff = BackoffPolicy(base=0.01, max_delay=0.1)
    with Queue[object](store, visibility_timeout=LEASE, backoff=backoff) as queue:
        say("ready", os.getpid())
        Worker(
            queue,
            handle,
            concurrency=2,
            # Longer than a lease, so that none can run out unseen.
            idle_timeout=3 * LEASE if drain else None,
        ).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
