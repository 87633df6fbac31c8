"""What a thread and another one that relieves it take from a batch."""

from __future__ import annotations

import pytest

from django_nobroker.engine.claim import Claimed
from django_nobroker.engine.lease import Token
from django_nobroker.seam import Attempt, Done, Error, Retry
from django_nobroker.worker import batch as batches
from django_nobroker.worker.batch import Batch, Ended, Leased


def leased(number):
    claimed = Claimed(
        position=number, row=None, queue="q", kind="", token=Token(1, number), until=0.0
    )
    return Leased(claimed)


def ended(job, outcome=None):
    attempt = Attempt(
        id="x",
        queue="q",
        kind=None,
        payload=b"1",
        number=1,
        max_attempts=5,
        priority=0,
        enqueued_at=0.0,
        worker="w",
        extend=lambda seconds: None,
    )
    return Ended(job, attempt, outcome or Done())


@pytest.fixture
def moment(monkeypatch):
    """The clock of the batch, a list of one number."""
    now = [100.0]
    monkeypatch.setattr(batches.time, "monotonic", lambda: now[0])
    return now


def test_jobs_come_in_their_order_and_then_none():
    jobs = [leased(1), leased(2)]
    batch = Batch(jobs)

    assert [batch.next(), batch.next(), batch.next()] == [*jobs, None]


def test_what_was_taken_away_does_not_come_any_more():
    jobs = [leased(n) for n in range(3)]
    batch = Batch(jobs)
    batch.next()

    assert batch.take_waiting() == jobs[1:]
    assert batch.next() is None
    assert batch.take_waiting() == []


def test_an_ended_job_is_taken_once():
    batch = Batch([leased(1)])
    batch.end(ended(batch.next()))

    assert len(batch.take_ended()) == 1
    assert batch.take_ended() == []


def test_short_jobs_are_settled_when_the_last_one_has_ended(moment):
    batch = Batch([leased(n) for n in range(3)])

    assert [batch.end(ended(batch.next())) for _ in range(3)] == [False, False, True]


def test_a_job_is_not_kept_longer_than_the_budget(moment):
    batch = Batch([leased(n) for n in range(9)])
    due = []
    for _ in range(4):
        job = batch.next()
        moment[0] += batches.BUDGET / 2
        due.append(batch.end(ended(job)))

    assert due == [False, False, True, True]


def test_a_failure_is_settled_at_once(moment):
    batch = Batch([leased(1), leased(2)])
    error = Error(type="E", message="no")

    assert batch.end(ended(batch.next(), Retry(error=error)))


def test_large_results_are_settled_before_they_are_many(moment):
    batch = Batch([leased(n) for n in range(9)])
    large = Done(result=b"x" * 200_000)

    assert [batch.end(ended(batch.next(), large)) for _ in range(2)] == [False, True]


def test_a_batch_is_late_when_others_wait_for_a_long_job(moment):
    batch = Batch([leased(1), leased(2)])
    batch.next()
    assert not batch.is_late()

    moment[0] += 2 * batches.LATE
    assert batch.is_late()

    batch.take_waiting()
    assert not batch.is_late()


def test_a_long_job_alone_is_not_late(moment):
    batch = Batch([leased(1)])
    batch.next()
    moment[0] += 1000

    assert not batch.is_late()


def test_the_longest_job_is_known(moment):
    batch = Batch([leased(n) for n in range(3)])
    for seconds in (1, 3, 2):
        job = batch.next()
        moment[0] += seconds
        batch.end(ended(job))
        moment[0] += 100  # settling is not the job's time

    assert batch.longest == 3
