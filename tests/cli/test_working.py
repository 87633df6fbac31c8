"""``work``."""

from __future__ import annotations

import signal
import sys

import pytest

from django_nobroker import MsgpackSerializer, Queue

PATIENCE = 30.0


@pytest.fixture(autouse=True)
def handlers(here, monkeypatch):
    """A module of handlers in the working directory; forgotten after the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    (here / "cli_handlers.py").write_text(
        "import time\n"
        "seen = []\n"
        "def note(job):\n    seen.append(job.payload)\n"
        "def fail(job):\n    raise ValueError('no\\x1b[31m\\nreally')\n"
        "def leave(job):\n    raise SystemExit(3)\n"
        "def wait(job):\n    print('begun', flush=True)\n    time.sleep(1)\n"
        "class Kind:\n    @staticmethod\n    def method(job):\n        seen.append(job.id)\n"
        "number = 5\n"
    )
    (here / "cli_broken.py").write_text("1 / 0\n")
    yield
    sys.modules.pop("cli_handlers", None)


def work(nobroker, function, *options):
    return nobroker(
        "work", f"cli_handlers:{function}", "--idle-timeout", "0.2", *options
    )


def test_the_function_is_called_with_each_job(nobroker, queue):
    queue.enqueue_many([1, 2, 3])
    ran = work(nobroker, "note")

    assert ran.code == 0
    assert ran.out == "3 leased, 3 succeeded, 0 failed, 0 dead, 0 lost leases\n"
    assert sys.modules["cli_handlers"].seen == [1, 2, 3]
    assert queue.stats().done == 3


def test_max_jobs_is_the_end_and_json_has_the_names_of_worker_stats(nobroker, queue):
    queue.enqueue_many([1, 2, 3])
    ran = work(nobroker, "Kind.method", "--max-jobs", "2", "--json", "-c", "2")

    assert ran.objects == [
        {"leased": 2, "succeeded": 2, "failed": 0, "dead": 0, "lost_leases": 0}
    ]


@pytest.mark.parametrize("function", ["fail", "leave"])
def test_a_failure_is_told_in_one_line(nobroker, queue, function):
    queue.enqueue(1, job_id="a", max_attempts=1)
    ran = work(nobroker, function)

    told = {
        "fail": r"ValueError: no\x1b[31m\nreally",
        "leave": "SystemExit: 3",
    }[function]
    assert ran.code == 0
    assert f"Job a failed, attempt 1 of 1: {told}\n" in ran.err
    assert queue.stats().dead == 1


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("cli_handlers:nothing", "AttributeError"),
        ("cli_handlers:number", "is not a function but a int"),
        ("cli_missing:f", "ModuleNotFoundError"),
        ("cli_broken:f", "ZeroDivisionError"),
    ],
)
def test_a_function_that_cannot_be_imported_is_an_error(nobroker, here, function, text):
    ran = nobroker("work", function)

    assert ran.code == 1
    assert text in ran.err
    assert ran.err.count("\n") == 1
    assert not (here / "jobs").exists()


def test_a_new_store_is_told(nobroker, directory):
    ran = work(nobroker, "note")

    assert "A new store is made in ./jobs.\n" in ran.err
    assert directory.is_dir()


def test_a_queue_of_another_serializer_can_be_worked_on(nobroker, directory):
    with Queue(directory, serializer=MsgpackSerializer()) as queue:
        queue.enqueue(b"bytes")
        work(nobroker, "note", "--serializer", "msgpack")

    assert sys.modules["cli_handlers"].seen == [b"bytes"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_what_runs_finish(queue, command, number):
    queue.enqueue_many([1, 2])
    with command("work", "cli_handlers:wait") as running:
        assert running.stdout.readline() == "begun\n"
        running.send_signal(number)
        out, _ = running.communicate(timeout=PATIENCE)

    assert running.returncode == 0
    assert out == "1 leased, 1 succeeded, 0 failed, 0 dead, 0 lost leases\n"
    assert (queue.stats().done, queue.stats().ready) == (1, 1)
