"""What a queue lets go, and what stays of it."""

from __future__ import annotations

import pytest

from django_nobroker import CompactionResult, JobState, Queue
from django_nobroker.exceptions import JobNotFoundError, NotLeasedError, QueueFull


def size_of(directory):
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def test_purge_empties_the_queue_leased_jobs_included(queue):
    queue.enqueue_many(range(5))
    held = queue.lease_one()

    assert queue.purge() == 5

    assert queue.stats().total == 0
    assert queue.lease() == []
    with pytest.raises((JobNotFoundError, NotLeasedError)):
        held.ack()


@pytest.mark.parametrize("state", ["done", JobState.DONE])
def test_purge_takes_those_of_one_state(queue, state):
    queue.enqueue_many(["a", "b", "c"])
    queue.lease_one().ack()
    queue.lease_one().fail(error="no")

    assert queue.purge(state) == 1

    stats = queue.stats()
    assert (stats.done, stats.dead, stats.ready) == (0, 1, 1)


def test_purge_takes_those_that_ended_long_enough_ago(queue, clock):
    queue.enqueue_many(["old", "young"])
    queue.lease_one().fail(error="no")
    clock.advance(100.0)
    queue.lease_one().fail(error="no")

    assert queue.purge("dead", older_than=50) == 1

    assert [job.payload for job in queue.dlq()] == ["young"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"state": "unheard of"}, ValueError),
        ({"older_than": -1}, ValueError),
        ({"older_than": float("nan")}, ValueError),
        ({"older_than": "1 day"}, TypeError),
        ({"older_than": True}, TypeError),
    ],
)
def test_purge_refuses_what_it_does_not_understand(queue, arguments, error):
    queue.enqueue("kept")

    with pytest.raises(error):
        queue.purge(**arguments)

    assert queue.stats().total == 1


def test_purge_makes_room_in_a_full_queue(tmp_path):
    with Queue(tmp_path / "jobs", max_pending=2) as queue:
        queue.enqueue_many(range(2))
        with pytest.raises(QueueFull):
            queue.enqueue("more", block=False)
        queue.purge()
        queue.enqueue("more", block=False)


def test_another_queue_of_the_store_is_left_alone(queue, open_queue):
    other = open_queue("other")
    other.enqueue("theirs")
    queue.enqueue("ours")

    queue.purge()

    assert (queue.stats().total, other.stats().total) == (0, 1)


def test_compact_drops_done_jobs_and_nothing_else(queue):
    queue.enqueue("later", delay=1000)
    queue.enqueue_many(["done", "dead", "leased", "ready"])
    queue.lease_one().ack()
    queue.lease_one().fail(error="broken")
    held = queue.lease_one()

    result = queue.compact()

    assert isinstance(result, CompactionResult)
    assert (result.kept, result.dropped) == (4, 1)
    assert result.describe().startswith("compacted ")
    assert result.describe().endswith("kept 4 jobs, dropped 1 completed")
    assert [(job.payload, job.last_error) for job in queue.dlq()] == [
        ("dead", "broken")
    ]
    held.ack()
    assert queue.lease_one().payload == "ready"
    stats = queue.stats()
    assert (stats.delayed, stats.done, stats.dead) == (1, 1, 1)


def test_compact_makes_the_log_small(queue, tmp_path):
    queue.enqueue({"due": "in a year"}, delay=365 * 86400)
    for _ in range(20):
        queue.enqueue_many(["x" * 1000] * 50)
        for job in queue.lease(50):
            job.ack()

    result = queue.compact()

    assert result.dropped == 1000
    assert size_of(tmp_path / "jobs") == result.bytes_after < 5000


def test_done_jobs_stay_as_long_as_result_ttl_says(open_queue, clock):
    queue = open_queue(result_ttl=60)
    queue.enqueue("a")
    queue.lease_one().ack()
    assert queue.compact().dropped == 0
    clock.advance(61.0)
    assert queue.compact().dropped == 1


def test_a_finished_id_blocks_for_job_id_ttl_compaction_or_not(open_queue, clock):
    queue = open_queue(job_id_ttl=60)
    first = queue.enqueue("a", job_id="mine")
    queue.lease_one().ack()
    queue.compact()
    with pytest.raises(JobNotFoundError):
        queue.get("mine")
    again = queue.enqueue("a", job_id="mine")
    assert queue.stats().ready == 0
    assert again.id == first.id
    clock.advance(61.0)
    queue.enqueue("a", job_id="mine")
    assert queue.stats().ready == 1


def test_without_compaction_the_id_is_free_after_job_id_ttl(open_queue, clock):
    queue = open_queue(job_id_ttl=60)
    queue.enqueue("a", job_id="mine")
    queue.lease_one().ack()
    clock.advance(59.0)
    assert queue.enqueue("a", job_id="mine").state == JobState.DONE
    clock.advance(2.0)
    assert queue.enqueue("b", job_id="mine").state == JobState.READY


def test_a_purged_id_is_free_at_once(queue):
    queue.enqueue("a", job_id="mine")
    queue.lease_one().ack()
    queue.compact()
    queue.purge("done")
    assert queue.enqueue("b", job_id="mine").state == JobState.READY


def test_compact_stops_when_asked(queue):
    queue.enqueue_many(range(10))
    told = []

    result = queue.compact(
        stopped=lambda: True, progress=lambda done, total: told.append((done, total))
    )

    assert (result.segments, result.moved) == (0, 0)
    assert queue.stats().ready == 10


def test_an_ack_that_is_repeated_after_a_compaction_is_told(queue):
    """Of a job without an id of its own nothing is left that could know the token."""
    queue.enqueue("a")
    queue.enqueue("b", job_id="given")
    gone, forgotten = queue.lease(2)
    gone.ack()
    forgotten.ack()
    queue.compact()

    with pytest.raises(JobNotFoundError):
        gone.ack()
    forgotten.ack()
    assert queue.stats().total == 0


def test_how_many_there_ever_were_outlives_compaction_purge_and_restart(open_queue):
    queue = open_queue()
    queue.enqueue_many(range(5))
    queue.enqueue("again", job_id="a")
    queue.enqueue("again", job_id="a")
    queue.lease_one().ack()
    queue.lease_one().fail()
    before = queue.diagnostics().totals
    assert (before.enqueued, before.completed, before.dead) == (6, 1, 1)

    queue.compact()
    queue.purge()
    queue.compact()
    queue.close()

    again = open_queue()
    again.rebuild_index()
    assert again.diagnostics().totals == before
    assert again.stats().total == 0


@pytest.mark.parametrize("option", ["result_ttl", "job_id_ttl"])
@pytest.mark.parametrize("value", [-1, float("nan"), "1", True])
def test_times_to_keep_are_checked(tmp_path, option, value):
    with pytest.raises((TypeError, ValueError), match=option):
        Queue(tmp_path / "jobs", **{option: value})
    assert not (tmp_path / "jobs").exists()
