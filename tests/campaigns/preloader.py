"""A process that opens a queue, forks like a web server, and lets all use it at once.

Usage: ``python -m tests.campaigns.preloader STORE CHILDREN JOBS``. While it forks, a
thread of it enqueues, so that every lock may be held at that moment. Lines: ``acked
ID...`` for each job, from parent and children.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback

from django_nobroker import Queue
from tests.campaigns.witness import say


def enqueue(queue: Queue[str], name: str, count: int) -> None:
    """Enqueue so many jobs, and work off one of ten."""
    for number in range(count):
        say("acked", queue.enqueue(f"{name} {number}").id)
        if number % 10 == 0 and (job := queue.lease_one()) is not None:
            job.ack()


def main(store: str, children: str, jobs: str) -> None:
    """Open, enqueue, fork, and wait for everybody."""
    with Queue[str](store) as queue:
        enqueue(queue, "before", 10)
        queue.stats()  # opens the index, too
        busy = threading.Thread(target=enqueue, args=[queue, "parent", int(jobs)])
        busy.start()
        pids = []
        for number in range(int(children)):
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    enqueue(queue, f"child {number}", int(jobs))
                    queue.close()
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
            pids.append(pid)
        failed = [pid for pid in pids if os.waitpid(pid, 0)[1] != 0]
        busy.join()
        say("failed", len(failed))


if __name__ == "__main__":
    main(*sys.argv[1:])
