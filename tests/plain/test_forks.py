"""A child of a fork leaves the index of its parent as it is, and never waits for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.doubles import PATIENCE

ROOT = Path(__file__).resolve().parent.parent.parent

#: The parent reads in one thread and writes in another while it forks. The child ends
#: as a program does, with all that Python then closes.
SCRIPT = """
import os, sys, threading
from django_nobroker import Queue

queue = Queue(sys.argv[1], index_directory=sys.argv[2])
queue.enqueue("first", job_id="first")
env = queue.opened().index._environment()
held, go_on = threading.Barrier(2), threading.Event()

def write():
    with env.begin(write=True):
        held.wait()
        go_on.wait()

writer = threading.Thread(target=write)
writer.start()
held.wait()
reading = env.begin()
before = env.readers()
try:
    if (pid := os.fork()) == 0:
        queue.enqueue("second", job_id="second")
        assert [job.payload for job in queue.lease(5)] == ["first", "second"]
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert str(os.getpid()) in before
    assert env.readers() == before, env.readers()
finally:
    go_on.set()
writer.join()
reading.abort()
assert queue.stats().leased == 2
assert queue.opened().index._environment() is env
print("as it was")
"""


def test_a_fork_neither_waits_for_the_parents_index_nor_touches_it(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "jobs", tmp_path],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=PATIENCE,
    )

    assert (done.stdout, done.returncode) == ("as it was\n", 0), done.stderr
