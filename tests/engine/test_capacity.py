"""Waiting for room in a full queue."""

from __future__ import annotations

import pytest

from django_nobroker.engine import capacity, deadletters
from django_nobroker.engine.capacity import NeverFits
from django_nobroker.engine.clock import Clock
from django_nobroker.engine.errors import QueueFull

from .driving import TIMEOUT, add, counts, kill, log_of

CLOCK = Clock()


def test_a_producer_that_waits_is_served_when_there_is_room():
    answers = [QueueFull("full"), QueueFull("full"), "done"]

    def enqueue():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert (
        capacity.waiting_for_room(enqueue, CLOCK, until=CLOCK.monotonic() + 20)
        == "done"
    )


def test_waiting_ends_with_the_time_that_was_given():
    tried = []

    def enqueue():
        tried.append(1)
        raise QueueFull("full")

    with pytest.raises(QueueFull):
        capacity.waiting_for_room(enqueue, CLOCK, until=CLOCK.monotonic() + 0.02)
    with pytest.raises(QueueFull):
        capacity.waiting_for_room(enqueue, CLOCK, until=CLOCK.monotonic() - 1)

    assert len(tried) >= 2


def test_what_can_never_fit_is_not_waited_for():
    def enqueue():
        raise NeverFits("never")

    with pytest.raises(NeverFits):
        capacity.waiting_for_room(enqueue, CLOCK, until=CLOCK.monotonic() + 1000)


def test_requeueing_beyond_the_capacity_moves_nothing(store):
    dead = []
    for n in range(3):
        add(store, n)
        dead.append(kill(store))
    add(store, "waiting")
    before = log_of(store.directory)

    with pytest.raises(QueueFull):
        deadletters.requeue(
            store, dead, by="", durable=True, timeout=TIMEOUT, max_pending=3
        )

    assert log_of(store.directory) == before
    assert counts(store) == {"ready": 1, "dead": 3}
    moved = deadletters.requeue(
        store, dead[:2], by="", durable=True, timeout=TIMEOUT, max_pending=3
    )
    assert moved == dead[:2]
