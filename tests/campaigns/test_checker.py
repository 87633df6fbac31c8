"""The checker of the campaigns finds what it is there to find."""

from __future__ import annotations

import pytest
from msgspec import Raw

from django_nobroker.engine.record import Ack, Dead, Enqueue, Failure, Lease, Nack
from tests.faults.story import Story

JOB = Enqueue(at=10, id="a", queue="q", t=0.0, max=2, payload=Raw(b"1"))
TWICE = [
    Enqueue(at=at, id="a", given="queue", queue="q", t=0.0, max=2, payload=Raw(b"1"))
    for at in (10, 90)
]
NO = Failure(message="no")


def lease(at, attempt=1, job=10):
    return Lease(at=at, job=job, prev=0, t=0.0, until=100.0, attempt=attempt)


def nack(at, *, now=0.0, lost=False):
    return Nack(
        at=at, job=10, prev=0, t=0.0, delay=1.0, until=now + 1.0, error=NO, lost=lost
    )


def ack(at):
    return Ack(at=at, job=10, prev=0, t=0.0)


def told(records):
    story = Story()
    for record in records:
        story.read(record)
    return story


@pytest.mark.parametrize(
    ("records", "state"),
    [
        ([JOB, lease(20), ack(30)], "done"),
        ([JOB, lease(20), nack(30), lease(40, 2), ack(50)], "done"),
        ([JOB, lease(20), nack(30, now=100.0, lost=True)], "ready"),
        (
            [JOB, lease(20), Dead(at=30, job=10, prev=0, t=0.0, error=NO, reason="no")],
            "dead",
        ),
    ],
)
def test_a_job_that_went_its_way_is_no_complaint(records, state):
    story = told(records)

    assert (story.wrong, story.state[10]) == ([], state)
    assert not story.figures["double"]


@pytest.mark.parametrize(
    ("records", "double"),
    [
        ([JOB, lease(20), lease(30, 2)], 1),  # held twice
        ([JOB, lease(20), nack(30, now=50.0, lost=True)], 1),  # taken back too early
        ([JOB, lease(20), ack(30), lease(40, 2)], 0),  # leased after its end
        ([JOB, lease(20), ack(30), ack(40)], 0),  # ended twice
        ([JOB, ack(30)], 0),  # ended without a lease
        ([JOB, lease(20, attempt=2)], 0),  # an attempt that nobody saw
        (
            [JOB, lease(20), nack(30), lease(40, 2), nack(50), lease(60, 3)],
            0,
        ),  # one more
        ([lease(20)], 0),  # nobody enqueued it
        (TWICE, 0),  # one id, two jobs
    ],
)
def test_whatever_cannot_be_is_a_complaint(records, double):
    story = told(records)

    assert len(story.wrong) == 1
    assert story.figures["double"] == double
