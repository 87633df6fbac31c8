"""``dlq``."""

from __future__ import annotations

import pytest

from django_nobroker import Queue


@pytest.fixture
def kill(directory):
    """Let jobs die in a queue."""

    def several(name, *payloads):
        with Queue(directory, name) as queue:
            for payload in payloads:
                queue.enqueue(payload, job_id=f"{name}-{payload}")
                queue.fail(queue.lease_one(), error=f"no {payload}")

    return several


def stats(nobroker, name):
    return nobroker("--json", "-q", name, "stats").objects[0]


def test_without_dead_letters_it_says_so(nobroker, queue):
    assert nobroker("dlq") == (0, "No dead letters.\n", "")
    assert nobroker("--json", "dlq").out == ""


def test_dead_letters_are_listed_with_their_errors(nobroker, kill):
    kill("default", 1, 2)
    kill("emails", 3)

    found = nobroker("--json", "dlq").objects
    assert [(one["payload"], one["last_error"]) for one in found] == [
        (1, "no 1"),
        (2, "no 2"),
        (3, "no 3"),
    ]
    ran = nobroker("-q", "emails", "dlq")
    assert [line.split()[0] for line in ran.lines] == ["id", "emails-3"]
    assert "no 3" in ran.out


def test_more_than_the_limit_is_told(nobroker, kill):
    kill("default", 1, 2)
    ran = nobroker("dlq", "--limit", "1")

    assert len(ran.lines) == 2
    assert "There are more" in ran.err


def test_one_comes_back(nobroker, kill):
    kill("default", 1, 2)

    assert nobroker("dlq", "--requeue", "default-1") == (0, "Requeued 1 job.\n", "")
    assert (
        stats(nobroker, "default")["ready"],
        stats(nobroker, "default")["dead"],
    ) == (1, 1)


def test_all_come_back_of_every_queue_or_of_one(nobroker, kill):
    kill("default", 1, 2)
    kill("emails", 3)

    assert nobroker("-q", "emails", "--json", "dlq", "--requeue").objects == [
        {"requeued": 1}
    ]
    assert nobroker("dlq", "--requeue").out == "Requeued 2 jobs.\n"
    assert nobroker("dlq", "--requeue").out == "Requeued 0 jobs.\n"


def test_what_is_not_dead_does_not_come_back(nobroker, queue):
    queue.enqueue(1, job_id="a")

    assert nobroker("dlq", "--requeue", "a").err == (
        "nobroker: Job a is not dead but ready.\n"
    )
    assert nobroker("dlq", "--requeue", "b").code == 1
