"""``compact`` and ``purge``."""

from __future__ import annotations

import io
import os
import signal

import pytest

from django_nobroker import Queue


@pytest.fixture
def answer(monkeypatch):
    """Let somebody at a terminal answer."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    return lambda text: monkeypatch.setattr("sys.stdin", Terminal(text))


@pytest.fixture
def no_terminal(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))


def finish(directory, name, count):
    with Queue(directory, name) as queue:
        queue.enqueue_many(range(count))
        for job in queue.lease(count):
            queue.ack(job)


def test_compact_drops_finished_jobs_of_every_queue(nobroker, directory):
    finish(directory, "default", 5)
    finish(directory, "emails", 5)
    ran = nobroker("compact")

    assert ran.code == 0
    assert ran.out.startswith("compacted ")
    assert ran.out.endswith("kept 0 jobs, dropped 10 completed\n")
    assert ran.err == ""


def test_compact_of_a_queue_leaves_the_others(nobroker, directory):
    finish(directory, "default", 5)
    finish(directory, "emails", 5)
    (found,) = nobroker("--json", "-q", "emails", "compact").objects

    assert (found["dropped"], found["kept"]) == (5, 5)


def test_ctrl_c_stops_a_compaction_between_its_slices(nobroker, directory, monkeypatch):
    finish(directory, "default", 5)

    def compact(store, kept, *, stopped, **_options):
        from django_nobroker.engine.compaction import CompactionResult

        os.kill(os.getpid(), signal.SIGINT)
        while not stopped():
            pass
        return CompactionResult(
            bytes_before=2,
            bytes_after=1,
            kept=0,
            dropped=0,
            moved=0,
            segments=0,
            seconds=0.0,
        )

    monkeypatch.setattr("django_nobroker.engine.compaction.compact", compact)
    ran = nobroker("compact")

    assert ran.code == 130
    assert ran.out.startswith("compacted 2 -> 1 bytes")
    assert ran.err == "Stopped before its end; what was done stays.\n"


def test_purge_without_a_terminal_does_nothing(nobroker, queue, no_terminal):
    queue.enqueue(1)

    assert nobroker("purge") == (
        1,
        "",
        "nobroker: purge asks first, and there is no terminal: add --yes.\n",
    )
    assert queue.stats().total == 1


@pytest.mark.parametrize("text", ["n\n", "\n", "", "yep\n"])
def test_purge_is_refused_by_anything_but_yes(nobroker, queue, answer, text):
    queue.enqueue(1)
    answer(text)
    ran = nobroker("purge")

    assert ran.code == 1
    assert ran.err.startswith("Purge all jobs of default (1) for good? [y/N] ")
    assert ran.err.endswith("nobroker: Nothing was purged.\n")
    assert queue.stats().total == 1


@pytest.mark.parametrize("text", ["y\n", "YES\n", " y "])
def test_purge_goes_on_with_yes(nobroker, queue, answer, text):
    queue.enqueue_many([1, 2])
    queue.lease_one()
    answer(text)
    ran = nobroker("purge")

    assert (ran.code, ran.out) == (0, "Purged 2 jobs.\n")
    assert "of which 1 may be held by a worker now" in ran.err
    assert queue.stats().total == 0


def test_purge_takes_what_was_chosen_of_the_queue_that_was_named(nobroker, directory):
    finish(directory, "default", 2)
    finish(directory, "emails", 3)
    with Queue(directory, "emails") as emails:
        emails.enqueue(1)

    young = nobroker("--json", "-q", "emails", "purge", "--yes", "--older-than", "1h")
    done = nobroker("-q", "emails", "purge", "--yes", "--state", "done")
    assert young.objects == [{"purged": 0}]
    assert done.out == "Purged 3 jobs.\n"
    assert nobroker("stats").lines[1:] == [
        "default      0        0       0     2     0      2",
        "emails       1        0       0     0     0      1",
    ]


def test_the_question_says_what_is_chosen(nobroker, queue, answer):
    queue.enqueue(1)
    for arguments, question in (
        (["--state", "dead"], "Purge all dead jobs of default (0) for good?"),
        (
            ["--older-than", "7d"],
            "Purge the jobs of default that are older than 7 d for",
        ),
    ):
        answer("n\n")
        assert nobroker("purge", *arguments).err.startswith(question)
