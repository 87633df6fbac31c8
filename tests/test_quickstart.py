"""The first scripts that a newcomer runs, each in a process of its own, without Django."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: Put before each script: at its end it tells whether Django was imported.
WATCH = """\
import atexit, sys
@atexit.register
def _():
    roots = {name.partition(".")[0] for name in sys.modules}
    assert not roots & {"django", "django_tasks", "asgiref"}, "Django was imported"
"""

FIRST = """\
from django_nobroker import Queue

q = Queue("./jobs")
q.enqueue({"send_email_to": "ada@example.com"})
q.enqueue({"send_email_to": "grace@example.com"})
print(q.stats())
q.close()
"""

WORK = """\
from django_nobroker import Queue, Worker

q = Queue("./jobs")

def handle(job):
    print("sending to", job.payload["send_email_to"])

Worker(q, handle, idle_timeout=1).run()
"""

FAIL = """\
from django_nobroker import Queue, Worker

q = Queue("./jobs", max_attempts=3)
q.enqueue({"charge": 500})

def handle(job):
    raise RuntimeError("the payment API is down")

Worker(q, handle, idle_timeout=1).run()

for job in q.dlq():
    print(job.attempts, job.last_error)
print(q.requeue_dead(), q.stats())
"""

ENQUEUE = """\
from django_nobroker import Queue

q = Queue("./jobs")
job = q.enqueue(
    {"resize": "photo.jpg", "width": 1024},
    priority=5,
    delay=30.0,
    max_attempts=3,
    job_id="order-42",
)
q.enqueue({"charge": 500}, job_id="order-42")
q.enqueue({"charge": 500}, job_id="order-42")
print(job.id, job.priority, job.max_attempts, q.stats())
"""

LEASE = """\
from django_nobroker import Queue

q = Queue("./jobs")
q.enqueue_many(["a", "b", "c"])
jobs = q.lease(10, visibility_timeout=60.0)
for job in jobs:
    q.extend(job, 120.0)
    q.ack(job)
print(len(jobs), q.stats())
"""

BACKOFF = """\
from django_nobroker import BackoffPolicy, Queue

q = Queue("./jobs", backoff=BackoffPolicy(
    base=1.0,
    factor=2.0,
    max_delay=300,
    jitter=0.5,
))
q.enqueue("payload", priority=9)
job = q.lease_one()
if job is not None:
    try:
        raise OSError("down")
    except Exception as exc:
        job = q.nack(job, error=str(exc))
print(job.state, 0.5 <= job.available_at - job.enqueued_at <= 1.5, job.last_error)
"""

WORKER = """\
from django_nobroker import Queue, Worker

q = Queue("./jobs")
q.enqueue_many(range(20))
stats = Worker(
    q, lambda job: None,
    concurrency=4,
    poll_interval=0.1,
    max_jobs=15,
    idle_timeout=None,
).run()
print(stats)
"""

NAMED = """\
from django_nobroker import Queue

emails = Queue("./jobs", "emails")
thumbs = Queue("./jobs", "thumbnails")
emails.enqueue(1)
thumbs.enqueue_many([1, 2])
print(emails.stats().total, thumbs.stats().total)
with Queue("./jobs", "emails") as q:
    print(q.get(q.list_jobs()[0].id).payload, q.recovery.describe())
"""


@pytest.fixture
def script(tmp_path):
    """Return a function that runs a script in one directory and returns what it prints."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "NOBROKER_INDEX_DIR": str(tmp_path),
    }

    def run(text):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", WATCH + text],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


def test_one_process_enqueues_and_another_works(script):
    assert script(FIRST) == (
        "QueueStats(ready=2, delayed=0, leased=0, done=0, dead=0, total=2)\n"
    )
    assert script(WORK) == "sending to ada@example.com\nsending to grace@example.com\n"
    assert script(WORK) == ""


def test_a_job_that_fails_three_times_is_a_dead_letter_with_its_error(script):
    assert script(FAIL) == (
        "3 RuntimeError: the payment API is down\n"
        "1 QueueStats(ready=1, delayed=0, leased=0, done=0, dead=0, total=1)\n"
    )


def test_every_option_of_an_enqueue_and_an_id_that_comes_again(script):
    assert script(ENQUEUE) == (
        "order-42 5 3 "
        "QueueStats(ready=0, delayed=1, leased=0, done=0, dead=0, total=1)\n"
    )


def test_jobs_are_leased_extended_and_finished_by_hand(script):
    assert script(LEASE) == (
        "3 QueueStats(ready=0, delayed=0, leased=0, done=3, dead=0, total=3)\n"
    )


def test_a_failed_job_waits_for_the_backoff(script):
    assert script(BACKOFF) == "ready True down\n"


def test_a_worker_with_every_option(script):
    assert script(WORKER) == (
        "WorkerStats(leased=15, succeeded=15, failed=0, dead=0, lost_leases=0)\n"
    )


def test_named_queues_in_one_directory(script):
    assert script(NAMED) == "1 2\n1 new store\n"
