"""``enqueue``."""

from __future__ import annotations

import pytest

from django_nobroker import MsgpackSerializer, Queue


def test_the_id_is_printed_when_the_job_is_there(nobroker, directory):
    ran = nobroker("enqueue", '{"resize": "photo.jpg"}', "--priority", "5")

    assert (ran.code, ran.err) == (0, "")
    with Queue(directory, read_only=True) as queue:
        job = queue.get(ran.out.strip())
    assert (job.payload, job.priority, job.queue) == (
        {"resize": "photo.jpg"},
        5,
        "default",
    )


def test_the_options_are_those_of_the_queue(nobroker, directory):
    ran = nobroker(
        *("--json", "-q", "emails", "enqueue", "hello", "--delay", "60"),
        *("--max-attempts", "2", "--id", "a"),
    )

    (found,) = ran.objects
    assert (found["id"], found["payload"], found["queue"]) == ("a", "hello", "emails")
    assert found["available_at"] - found["enqueued_at"] == pytest.approx(60)
    assert found["max_attempts"] == 2


def test_count_adds_so_many(nobroker, directory):
    ran = nobroker("enqueue", "1", "--count", "1000")

    assert len(set(ran.lines)) == 1000
    with Queue(directory, read_only=True) as queue:
        assert queue.stats().ready == 1000


def test_an_id_that_is_there_adds_nothing_and_says_so(nobroker, queue):
    first = nobroker("enqueue", "1", "--id", "a")
    again = nobroker("enqueue", "1", "--id", "a")
    other = nobroker("enqueue", "2", "--id", "a")

    assert first == (0, "a\n", "")
    assert again == (0, "a\n", "A job a was there already; nothing was added.\n")
    assert other.err == (
        "A job a was there already with another payload; nothing was added.\n"
    )
    assert queue.stats().total == 1
    assert queue.get("a").payload == 1


def test_several_jobs_cannot_have_one_id(nobroker, here):
    ran = nobroker("enqueue", "1", "--id", "a", "--count", "2")

    assert ran.code == 1
    assert list(here.iterdir()) == []


def test_a_payload_that_cannot_be_stored_is_an_error(nobroker, queue):
    ran = nobroker("enqueue", "[" * 300 + "]" * 300)

    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert "nested" in ran.err
    assert queue.stats().total == 0


def test_another_serializer_may_write_the_payload(nobroker, directory):
    nobroker("enqueue", '{"a": 1}', "--serializer", "msgpack")

    with Queue(directory, serializer=MsgpackSerializer()) as queue:
        assert queue.lease_one().payload == {"a": 1}
