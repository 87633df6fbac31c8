"""What an enqueue of an id answers that was given before."""

from __future__ import annotations

import asyncio
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from django_nobroker import AsyncQueue, JobState, MsgpackSerializer, Undecodable
from django_nobroker.exceptions import (
    DuplicateJobError,
    JobNotFoundError,
    NobrokerError,
    QueueFull,
    SerializationError,
)


def size_of(directory):
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def flags(jobs):
    return [(job.payload, job.created, job.conflict) for job in jobs]


def test_a_new_job_is_created_and_no_other_is(queue):
    assert flags([queue.enqueue(1), queue.enqueue(2, job_id="a")]) == [
        (1, True, False),
        (2, True, False),
    ]
    assert flags(queue.enqueue_many([3, 4], job_ids=["b", None])) == [
        (3, True, False),
        (4, True, False),
    ]
    assert flags(queue.enqueue_many([5])) == [(5, True, False)]
    seen = [queue.get("a"), queue.lease_one(), *queue.list_jobs("ready")]
    assert not any(job.created or job.conflict for job in seen)


def test_a_repeated_id_returns_the_job_that_exists_and_says_so(queue):
    first = queue.enqueue({"a": 1, "b": 2}, job_id="x")

    same = queue.enqueue({"b": 2, "a": 1}, job_id="x")
    other = queue.enqueue({"a": 1}, job_id="x")

    assert (same.created, same.conflict) == (False, False)
    assert (other.created, other.conflict) == (False, True)
    assert first.payload == same.payload == other.payload
    assert first.position == same.position == other.position
    assert queue.stats().total == 1


def test_ids_repeated_within_a_batch_are_flagged_alike(queue):
    queue.enqueue("old", job_id="a")

    jobs = queue.enqueue_many(
        ["old", "new", "b", "b", "other"], job_ids=["a", "a", "b", "b", "b"]
    )

    assert flags(jobs) == [
        ("old", False, False),
        ("old", False, True),
        ("b", True, False),
        ("b", False, False),
        ("b", False, True),
    ]


@pytest.mark.parametrize("state", list(JobState)[:4])
def test_another_payload_is_an_error_when_asked_and_the_same_one_is_not(
    queue, directory, state
):
    queue.enqueue({"charge": 500}, job_id="order-42")
    if state is not JobState.READY:
        job = queue.lease_one()
        if state is JobState.DONE:
            job.ack()
        elif state is JobState.DEAD:
            job.fail()
    before = size_of(directory)

    again = queue.enqueue({"charge": 500}, job_id="order-42", on_conflict="error")
    with pytest.raises(DuplicateJobError, match="order-42") as caught:
        queue.enqueue({"charge": 1}, job_id="order-42", on_conflict="error")
    with pytest.raises(DuplicateJobError, match="order-42"):
        queue.enqueue_many([1, 2], job_ids=[None, "order-42"], on_conflict="error")
    with pytest.raises(DuplicateJobError, match="twin"):
        queue.enqueue_many([1, 2], job_ids=["twin", "twin"], on_conflict="error")

    assert (again.state, again.created, again.conflict) == (state, False, False)
    assert caught.value.job_id == "order-42"
    assert isinstance(caught.value, NobrokerError)
    assert size_of(directory) == before


def test_the_error_survives_being_sent_to_another_process():
    error = pickle.loads(pickle.dumps(DuplicateJobError("text", "id")))

    assert (str(error), error.job_id) == ("text", "id")


def test_twins_that_are_alike_are_one_job_and_no_error(queue):
    jobs = queue.enqueue_many([1, 1], job_ids=["a", "a"], on_conflict="error")

    assert flags(jobs) == [(1, True, False), (1, False, False)]


def test_a_conflict_does_not_wait_for_room(open_queue):
    queue = open_queue(max_pending=1)
    queue.enqueue(1, job_id="a")

    with pytest.raises(DuplicateJobError):
        queue.enqueue(2, job_id="a", on_conflict="error")
    with pytest.raises(QueueFull):
        queue.enqueue(2, job_id="b", on_conflict="error", block=False)


@pytest.mark.parametrize(
    ("value", "error"), [("fail", ValueError), (None, TypeError), (True, TypeError)]
)
def test_a_bad_wish_is_refused_before_anything_is_written(
    queue, directory, value, error
):
    before = size_of(directory)

    with pytest.raises(error, match="on_conflict"):
        queue.enqueue(1, on_conflict=value)
    with pytest.raises(error, match="on_conflict"):
        queue.enqueue_many([], on_conflict=value)

    assert size_of(directory) == before


# --- jobs of which only the id is left --------------------------------------------------


@pytest.fixture(params=[None, MsgpackSerializer], ids=["json", "msgpack"])
def forgetful(request, open_queue):
    """A queue that has forgotten a job: its id is all that a compaction left."""
    queue = open_queue(serializer=request.param and request.param())
    queue.enqueue({"charge": 500}, job_id="order-42")
    queue.lease_one().ack()
    queue.compact()
    with pytest.raises(JobNotFoundError):
        queue.get("order-42")
    return queue


def test_a_forgotten_job_answers_with_its_id_and_the_payload_if_it_is_the_same(
    forgetful,
):
    for _ in range(2):
        same = forgetful.enqueue({"charge": 500}, job_id="order-42")
        other = forgetful.enqueue({"charge": 1}, job_id="order-42")

        assert (same.id, same.state) == ("order-42", JobState.FORGOTTEN)
        assert (same.payload, same.created, same.conflict) == (
            {"charge": 500},
            False,
            False,
        )
        assert (other.id, other.state) == ("order-42", JobState.FORGOTTEN)
        assert (other.created, other.conflict) == (False, True)
        assert isinstance(other.payload, Undecodable)
        assert other.payload.data is None
        assert "forgotten" in other.payload.error
        forgetful.compact()
    assert forgetful.stats().total == 0


def test_a_forgotten_job_knows_another_payload(forgetful):
    forgetful.enqueue({"charge": 500}, job_id="order-42", on_conflict="error")
    with pytest.raises(DuplicateJobError):
        forgetful.enqueue({"charge": 1}, job_id="order-42", on_conflict="error")


def test_forgotten_jobs_are_listed_when_asked_for_only(forgetful):
    assert forgetful.list_jobs() == []

    (job,) = forgetful.list_jobs("forgotten")

    assert (job.id, job.state) == ("order-42", "forgotten")
    assert isinstance(job.payload, Undecodable)
    forgetful.purge("forgotten")
    assert forgetful.enqueue(1, job_id="order-42").created


# --- together ---------------------------------------------------------------------------


def test_of_threads_that_give_one_id_exactly_one_creates_the_job(queue):
    with ThreadPoolExecutor(8) as threads:
        jobs = list(threads.map(lambda n: queue.enqueue(n % 2, job_id="a"), range(40)))

    assert sum(job.created for job in jobs) == 1
    assert sum(job.conflict for job in jobs) == 20


def test_coroutines_get_the_same_flags_and_errors(directory):
    async def main():
        async with AsyncQueue(directory) as queue:
            jobs = [
                await queue.enqueue(1, job_id="a"),
                await queue.enqueue(2, job_id="a"),
                *await queue.enqueue_many([1, 3], job_ids=["a", "b"]),
            ]
            assert flags(jobs) == [
                (1, True, False),
                (1, False, True),
                (1, False, False),
                (3, True, False),
            ]
            with pytest.raises(DuplicateJobError):
                await queue.enqueue(2, job_id="a", on_conflict="error")
            with pytest.raises(DuplicateJobError):
                await queue.enqueue_many([2], job_ids=["a"], on_conflict="error")

    asyncio.run(main())


def test_a_payload_that_cannot_be_stored_is_told_first(queue):
    queue.enqueue(1, job_id="a")

    with pytest.raises(SerializationError):
        queue.enqueue({1}, job_id="a", on_conflict="error")
