"""A process that enqueues until it is killed, and tells what was acknowledged.

Usage: ``python -m tests.campaigns.producer STORE NAME``. Lines: ``ready PID``, then
``acked ID...`` after each call of ``enqueue`` that returned.
"""

from __future__ import annotations

import os
import random
import sys
import time

from django_nobroker import Queue
from tests.campaigns.witness import say

#: So many jobs a second that workers keep up with them.
PAUSE = 0.003


def main(store: str, name: str) -> None:
    """Enqueue in every way there is."""
    chance = random.Random()
    with Queue[object](store, max_attempts=5) as queue:
        say("ready", os.getpid())
        number = 0
        while True:
            number += 1
            kind = chance.randrange(6)
            payload = {"from": name, "number": number}
            if kind == 0:
                jobs = queue.enqueue_many([payload, payload, payload])
            elif kind == 1:
                # Also an id that the producer before this one may have given.
                jobs = [queue.enqueue(payload, job_id=f"{name}-{number}")]
            elif kind == 2:
                jobs = [queue.enqueue(payload, delay=chance.random() / 20)]
            else:
                jobs = [queue.enqueue(payload, priority=chance.randrange(-2, 3))]
            say("acked", *(job.id for job in jobs))
            time.sleep(chance.random() * 2 * PAUSE)


if __name__ == "__main__":
    main(*sys.argv[1:])
