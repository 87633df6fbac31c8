"""The worker of the plain face: a handler, called with each job."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from django_nobroker import BackoffPolicy, JobState, Worker, WorkerStats
from django_nobroker.exceptions import QueueClosedError
from tests.doubles import PATIENCE

ROOT = Path(__file__).resolve().parent.parent.parent


def run(queue, handler, **options):
    """Run a worker in this thread until the queue has been empty for an instant."""
    options.setdefault("idle_timeout", 0.01)
    return Worker(queue, handler, **options).run()


class SpeechlessError(Exception):
    def __str__(self):
        raise SystemExit("not even this")


# --- handlers ------------------------------------------------------------------


def test_returning_finishes_the_job_whatever_is_returned(queue):
    queue.enqueue_many(["a", "b"])
    seen = []

    stats = run(queue, lambda job: seen.append(job.payload) or object())

    assert repr(stats) == (
        "WorkerStats(leased=2, succeeded=2, failed=0, dead=0, lost_leases=0)"
    )
    assert seen == ["a", "b"]
    assert queue.stats().done == 2


def test_a_handler_gets_the_job_that_lease_would_have_given(queue):
    queue.enqueue({"a": [1]}, job_id="order-42", priority=3, max_attempts=2)
    seen = []

    run(queue, seen.append)

    (job,) = seen
    assert (job.id, job.payload, job.queue) == ("order-42", {"a": [1]}, "default")
    assert (job.priority, job.state) == (3, JobState.LEASED)
    assert (job.attempts, job.max_attempts) == (1, 2)


def test_a_handler_sees_when_its_job_was_due_and_why_it_failed_before(queue, clock):
    due = queue.enqueue(1, delay=100).available_at
    clock.advance(101)
    seen = []

    def handle(job):
        seen.append((job.available_at, job.last_error))
        if job.attempts == 1:
            raise ValueError("no")

    run(queue, handle)

    assert seen[0] == (due, None)
    assert seen[1][1] == "ValueError: no"


@pytest.mark.parametrize(
    "raised",
    [
        ValueError("no"),
        SystemExit(1),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        GeneratorExit(),
        StopIteration(),
        SpeechlessError(),
        ValueError("half \ud800 pair"),
        ValueError("x" * 20_000_000),
        ExceptionGroup("many", [ValueError("no"), ValueError("no")]),
    ],
    ids=lambda raised: type(raised).__name__,
)
def test_whatever_a_handler_raises_is_a_failed_attempt(queue, raised):
    queue.enqueue("bad", job_id="bad", max_attempts=2)
    queue.enqueue("good")

    def handle(job):
        if job.payload == "bad":
            raise raised

    stats = run(queue, handle)

    assert stats == WorkerStats(leased=3, succeeded=1, failed=2, dead=1)
    job = queue.get("bad")
    assert (job.state, job.attempts) == (JobState.DEAD, 2)
    assert job.last_error.startswith(type(raised).__name__)
    assert len(job.last_error.encode()) < 20_000


def test_one_of_the_permanent_errors_is_a_dead_letter_at_once(queue):
    queue.enqueue_many(["missing", "down"], max_attempts=3)

    def handle(job):
        raise KeyError(job.payload) if job.payload == "missing" else OSError("down")

    stats = run(queue, handle, permanent_errors=(LookupError,))

    assert stats == WorkerStats(leased=4, failed=4, dead=2)
    assert [job.attempts for job in queue.dlq()] == [1, 3]


def test_failed_jobs_are_retried_after_the_backoff_of_their_queue(open_queue):
    queue = open_queue(backoff=BackoffPolicy(base=0.1, factor=1, jitter=0))
    queue.enqueue(1, max_attempts=3)

    def handle(job):
        raise RuntimeError("the payment API is down")

    stats = run(queue, handle)

    assert stats == WorkerStats(leased=3, failed=3, dead=1)
    (job,) = queue.dlq()
    assert job.last_error == "RuntimeError: the payment API is down"


def test_a_handler_may_settle_its_job_itself(queue):
    queue.enqueue("ack")

    assert run(queue, lambda job: job.ack()) == WorkerStats(leased=1, succeeded=1)


def test_a_handler_may_extend_its_lease(queue, clock):
    queue.enqueue("long")

    def handle(job):
        assert job.extend(1000).state is JobState.LEASED
        clock.advance(900)
        assert queue.lease_one() is None

    assert run(queue, handle) == WorkerStats(leased=1, succeeded=1)


def test_a_job_that_is_purged_while_it_runs_is_a_lost_lease(queue):
    queue.enqueue_many(["purged", "kept"])

    def handle(job):
        if job.payload == "purged":
            queue.purge("leased")

    stats = run(queue, handle)

    assert stats == WorkerStats(leased=2, succeeded=1, lost_leases=1)
    assert queue.stats().total == 1


def test_a_handler_may_enqueue_and_look(queue):
    queue.enqueue(2)

    def handle(job):
        if job.payload:
            queue.enqueue(job.payload - 1)
        assert queue.stats().leased >= 1

    assert run(queue, handle, concurrency=2).succeeded == 3


def test_threads_run_handlers_at_the_same_time(queue):
    queue.enqueue_many(range(4))
    together = threading.Barrier(4)

    stats = run(queue, lambda job: together.wait(PATIENCE), concurrency=4)

    assert stats == WorkerStats(leased=4, succeeded=4)


def test_a_payload_that_python_cannot_read_is_a_dead_letter(queue):
    """A store may hold what another program wrote."""
    from django_nobroker.engine import enqueue

    enqueue.place(
        queue.opened(),
        [
            enqueue.new(
                queue="default",
                payload=b"1" * 5000,
                now=1.0,
                max_attempts=5,
            )
        ],
        durable=True,
        timeout=1.0,
    )
    queue.enqueue("good")
    seen = []

    stats = run(queue, lambda job: seen.append(job.payload))

    assert stats == WorkerStats(leased=2, succeeded=1, failed=1, dead=1)
    assert seen == ["good"]


# --- arguments -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "name"),
    [
        ({"handler": None}, TypeError, "handler"),
        ({"concurrency": 0}, ValueError, "concurrency"),
        ({"concurrency": True}, TypeError, "concurrency"),
        ({"concurrency": 1.5}, TypeError, "concurrency"),
        ({"poll_interval": 0}, ValueError, "poll_interval"),
        ({"poll_interval": "1"}, TypeError, "poll_interval"),
        ({"max_jobs": -1}, ValueError, "max_jobs"),
        ({"max_jobs": 1.5}, TypeError, "max_jobs"),
        ({"idle_timeout": float("nan")}, ValueError, "idle_timeout"),
        ({"idle_timeout": "1"}, TypeError, "idle_timeout"),
        ({"heartbeat_interval": 0}, ValueError, "heartbeat_interval"),
        ({"heartbeat_interval": 30}, ValueError, "heartbeat_interval"),
        ({"permanent_errors": ("ValueError",)}, TypeError, "permanent_errors"),
        ({"permanent_errors": ValueError}, TypeError, "permanent_errors"),
    ],
)
def test_a_bad_argument_is_refused_before_anything_runs(queue, options, error, name):
    handler = options.pop("handler", print)

    with pytest.raises(error, match=name):
        Worker(queue, handler, **options)


def test_a_worker_on_a_closed_queue_says_so(queue):
    worker = Worker(queue, print)
    queue.close()

    with pytest.raises(QueueClosedError):
        worker.run()


# --- stopping -----------------------------------------------------------------------


def test_stop_lets_the_running_handler_finish(queue):
    queue.enqueue_many([1, 2])
    begun, go_on = threading.Event(), threading.Event()

    def handle(job):
        begun.set()
        assert go_on.wait(PATIENCE)

    worker = Worker(queue, handle)
    with ThreadPoolExecutor(1) as threads:
        result = threads.submit(worker.run)
        assert begun.wait(PATIENCE)
        worker.stop()
        assert not result.done()
        go_on.set()
        assert result.result(PATIENCE) == WorkerStats(leased=1, succeeded=1)
    assert queue.stats().ready == 1


def test_a_handler_may_stop_its_worker(queue):
    queue.enqueue_many([1, 2, 3])
    worker = Worker(queue, lambda job: worker.stop())

    assert worker.run() == WorkerStats(leased=1, succeeded=1)


def test_signal_handlers_are_as_before_when_the_worker_has_ended(queue):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    during = []
    queue.enqueue(1)

    run(queue, lambda job: during.append(signal.getsignal(signal.SIGTERM)))

    assert during[0] is not before[1]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_the_worker_may_be_told_to_leave_signals_alone(queue):
    before = signal.getsignal(signal.SIGTERM)
    during = []
    queue.enqueue(1)

    run(
        queue,
        lambda job: during.append(signal.getsignal(signal.SIGTERM)),
        handle_signals=False,
    )

    assert during == [before]


#: The handler says that it runs, and ends when it is told to. A signal may reach any
#: thread of a process, and the main one a moment later: the job waits for that.
PROGRAM = """
import sys
import threading
from django_nobroker import Queue, Worker

told = threading.Event()

class Told(Worker):
    def stop(self):
        super().stop()
        told.set()

def handle(job):
    print("running", flush=True)
    sys.stdin.readline()
    told.wait(60)

with Queue(sys.argv[1], index_directory=sys.argv[2]) as queue:
    print(Told(queue, handle).run(), queue.stats().ready, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_running_job_finish_and_the_program_go_on(
    queue, tmp_path, directory, number
):
    queue.enqueue_many([1, 2])
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, directory, tmp_path],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout.readline() == "running\n"
        os.kill(program.pid, number)
        os.kill(program.pid, number)
        rest, _ = program.communicate("go on\n", timeout=PATIENCE)

    assert rest == (
        "WorkerStats(leased=1, succeeded=1, failed=0, dead=0, lost_leases=0) 1\n"
    )
    assert program.returncode == 0
