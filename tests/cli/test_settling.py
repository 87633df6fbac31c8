"""``ack`` and ``nack`` of a job that somebody else holds."""

from __future__ import annotations

import pytest

from django_nobroker.exceptions import NotLeasedError


@pytest.fixture
def held(queue):
    """A job that a worker holds."""
    queue.enqueue({"to": "ada"}, job_id="a", max_attempts=2)
    return queue.lease_one()


def test_ack_finishes_a_job_whoever_holds_it(nobroker, queue, held):
    assert nobroker("ack", "a") == (0, "Job a is done.\n", "")
    assert queue.stats().done == 1
    queue.ack(held)  # its own lease completed it, so nothing is wrong


def test_the_holder_is_told_that_its_lease_is_lost(nobroker, queue, held):
    ran = nobroker("--json", "nack", "a", "--error", "by hand")

    assert ran.code == 0
    assert (ran.objects[0]["state"], ran.objects[0]["last_error"]) == (
        "ready",
        "by hand",
    )
    with pytest.raises(NotLeasedError):
        queue.ack(held)


def test_a_nacked_job_waits_as_long_as_was_said(nobroker, queue, held):
    ran = nobroker("nack", "a", "--delay", "0")

    assert ran.out == "Job a is ready again, 1 of 2 attempts used.\n"
    again = queue.lease_one()
    assert again.attempts == 2
    assert nobroker("nack", "a").out == "Job a is a dead letter now.\n"
    assert queue.get("a").last_error == "nacked by an operator"


@pytest.mark.parametrize("verb", ["ack", "nack"])
def test_what_is_not_leased_cannot_be_ended(nobroker, queue, verb):
    queue.enqueue(1, job_id="b")

    assert nobroker(verb, "b").err == "nobroker: Job b is not leased but ready.\n"
    assert nobroker(verb, "c").err == "nobroker: No job c is in the store.\n"
    assert nobroker("-q", "other", verb, "b").code == 1
