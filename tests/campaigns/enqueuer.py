"""A process that only enqueues, like a web server, and says how much memory it takes.

Usage: ``python -m tests.campaigns.enqueuer STORE COUNT``. Line: ``memory KIB``, the
resident set after COUNT jobs.
"""

from __future__ import annotations

import sys
from pathlib import Path

from django_nobroker import Queue
from tests.campaigns.witness import say


def resident() -> int:
    """Return the resident memory of this process in KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS in /proc/self/status")


def main(store: str, count: str) -> None:
    """Enqueue one job at a time."""
    with Queue[dict[str, object]](store, fsync=False) as queue:
        for number in range(int(count)):
            queue.enqueue({"user": number, "mail": "welcome"}, priority=number % 3)
        say("memory", resident())


if __name__ == "__main__":
    main(*sys.argv[1:])
