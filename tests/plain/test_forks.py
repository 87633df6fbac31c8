"""What children of a fork do to the index of their parent, and all of them at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from django_nobroker import Queue
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


#: Children of one parent, whom it lets go all at once. Each tells what it was given.
TOGETHER = """
import os, sys
from django_nobroker import Queue
from django_nobroker.exceptions import QueueFull

def one_id(queue, number):
    yield queue.enqueue(number, job_id="one")

def until_full(queue, number):
    while True:
        try:
            yield from queue.enqueue_many([number] * (1 + number % 3), block=False)
        except QueueFull:
            break

act = {"one_id": one_id, "until_full": until_full}[sys.argv[3]]
go, wait = os.pipe()
for number in range(8):
    if os.fork() == 0:
        os.close(wait)
        os.read(go, 1)
        with Queue(sys.argv[1], index_directory=sys.argv[2], max_pending=50) as queue:
            made = [job for job in act(queue, number)]
        text = "".join(f"{job.id} {job.payload} {job.created}\\n" for job in made)
        os.write(1, text.encode())
        os._exit(0)
os.close(go)
os.close(wait)
for number in range(8):
    assert os.wait()[1] == 0
"""


def together(tmp_path, what):
    """Let eight processes enqueue at once; return ids, payloads and whether created."""
    done = subprocess.run(
        [sys.executable, "-c", TOGETHER, tmp_path / "jobs", tmp_path, what],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return [line.split() for line in done.stdout.splitlines()]


def test_processes_that_give_one_id_at_once_make_one_job(tmp_path):
    answers = together(tmp_path, "one_id")

    assert len(answers) == 8
    assert len({(job_id, payload) for job_id, payload, _ in answers}) == 1
    assert [created for *_, created in answers].count("True") == 1


def test_processes_together_never_fill_a_queue_beyond_its_capacity(tmp_path):
    made = together(tmp_path, "until_full")

    assert len({job_id for job_id, *_ in made}) == len(made) == 50
    with Queue(tmp_path / "jobs", index_directory=tmp_path) as queue:
        assert queue.stats().ready == 50
