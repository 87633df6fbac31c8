"""What a job shows, and that its verbs are those of its queue."""

from __future__ import annotations

import enum

import pytest

from django_nobroker import Job, JobState
from django_nobroker.exceptions import NotLeasedError


def test_the_states_are_strings():
    assert issubclass(JobState, enum.StrEnum)
    assert list(JobState)[:4] == ["ready", "leased", "done", "dead"]
    assert f"{JobState.READY}" == "ready"


def test_a_job_cannot_be_changed(queue):
    job = queue.enqueue(1)

    with pytest.raises(AttributeError):
        job.state = JobState.DONE


def test_a_job_is_what_it_was_at_its_moment(queue):
    before = queue.enqueue("a")
    leased = queue.lease_one()
    leased.ack()

    assert (before.state, leased.state) == (JobState.READY, JobState.LEASED)
    assert queue.get(before.id).state is JobState.DONE


def test_the_text_of_a_job_does_not_tell_the_proof_of_its_lease(queue):
    queue.enqueue({"a": 1}, job_id="order-42")
    job = queue.lease_one()

    assert repr(job) == (
        "Job(id='order-42', queue='default', state='leased', attempts=1, "
        "payload={'a': 1})"
    )


def test_ack_finishes_the_job(queue):
    queue.enqueue(1)

    queue.lease_one().ack()

    assert queue.stats().done == 1


def test_nack_returns_the_job_as_it_waits_for_its_retry(queue):
    queue.enqueue(1)

    job = queue.lease_one().nack(error="no", delay=60)

    assert isinstance(job, Job)
    assert (job.state, job.attempts, job.last_error) == (JobState.READY, 1, "no")


def test_fail_returns_the_dead_job(queue):
    queue.enqueue(1)

    job = queue.lease_one().fail(error="no")

    assert (job.state, job.last_error) == (JobState.DEAD, "no")


def test_release_returns_the_job_with_its_attempt_not_counted(queue):
    queue.enqueue(1)

    job = queue.lease_one().release()

    assert (job.state, job.attempts) == (JobState.READY, 0)


def test_extend_returns_a_job_that_is_still_held(queue):
    queue.enqueue(1)

    queue.lease_one().extend(60).ack()

    assert queue.stats().done == 1


@pytest.mark.parametrize(
    "verb",
    [Job.ack, Job.nack, Job.fail, Job.release, lambda job: job.extend(1)],
    ids=["ack", "nack", "fail", "release", "extend"],
)
@pytest.mark.parametrize("how", ["enqueue", "get", "list_jobs", "after a nack"])
def test_a_job_that_was_not_leased_has_no_proof(queue, verb, how):
    job = queue.enqueue(1)
    if how == "get":
        job = queue.get(job.id)
    elif how == "list_jobs":
        (job,) = queue.list_jobs()
    elif how == "after a nack":
        job = queue.lease_one().nack()

    with pytest.raises(NotLeasedError, match=job.id):
        verb(job)
