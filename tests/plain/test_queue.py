"""What a queue promises to those who put work in and take it out."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from django_nobroker import BackoffPolicy, JobState, Queue, QueueStats
from django_nobroker.engine.locks import StoreLock
from django_nobroker.engine.vfs import Access, Vfs
from django_nobroker.exceptions import (
    CorruptLogError,
    JobNotFoundError,
    LockTimeoutError,
    NobrokerError,
    NotLeasedError,
    QueueClosedError,
    QueueEmpty,
    QueueFull,
    SerializationError,
    StorageError,
    StoreFailedError,
)
from tests.doubles import PATIENCE


def size_of(directory):
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def ids(jobs):
    return [job.id for job in jobs]


# --- adding work --------------------------------------------------------------


def test_a_new_job_tells_all_that_is_known_of_it(queue, clock):
    before = clock.wall()
    job = queue.enqueue({"a": [1, None]}, priority=7, max_attempts=2)

    assert (job.payload, job.queue, job.priority) == ({"a": [1, None]}, "default", 7)
    assert (job.state, job.attempts, job.max_attempts) == (JobState.READY, 0, 2)
    assert before <= job.enqueued_at == job.available_at <= clock.wall()
    assert job.last_error is None
    again = queue.get(job.id)
    assert repr(again) == repr(job)
    assert (again.enqueued_at, again.available_at, again.priority) == (
        job.enqueued_at,
        job.available_at,
        7,
    )


def test_jobs_get_ids_of_their_own(queue):
    made = ids(queue.enqueue_many(range(500))) + ids(
        queue.enqueue(number) for number in range(50)
    )

    assert len(set(made)) == 550


def test_when_enqueue_returns_the_job_is_synced_to_the_disk(queue, disk):
    for add in (queue.enqueue, lambda value: queue.enqueue_many([value, value])):
        add("first")  # opens descriptors
        del disk.calls[:]

        add("second")

        written, synced = disk.calls
        assert b'"second"' in written
        assert synced == "sync"


def test_a_batch_is_one_write_and_one_sync(queue, disk):
    queue.enqueue("first")
    del disk.calls[:]

    queue.enqueue_many(range(1000))

    assert [type(call) for call in disk.calls] == [bytes, str]


def test_each_verb_syncs_once_or_not_at_all(queue, disk):
    """A lease that a power cut takes was given to nobody, so it needs no sync."""
    queue.enqueue_many(range(5))
    leased = queue.lease(5)
    expected = {
        lambda: queue.enqueue(1): 1,
        lambda: queue.enqueue_many([1, 2]): 1,
        lambda: queue.lease(1): 0,
        lambda: queue.extend(leased[0], 60): 0,
        lambda: queue.ack(leased[0]): 1,
        lambda: queue.nack(leased[1]): 1,
        lambda: queue.fail(leased[2]): 1,
        lambda: queue.release(leased[3]): 1,
        queue.requeue_dead: 1,
        queue.stats: 0,
    }
    for act, syncs in expected.items():
        del disk.calls[:]
        act()
        assert disk.calls.count("sync") == syncs


def kernel_syncs(directory, index, fsync):
    """Count the syncs of three enqueues as the kernel sees them."""
    program = (
        "import sys; from django_nobroker import Queue\n"
        f"with Queue({str(directory)!r}, index_directory={str(index)!r},"
        f" fsync={fsync}) as queue:\n"
        "    queue.stats()\n"
        "    print('begin', file=sys.stderr, flush=True)\n"
        "    for n in range(3): queue.enqueue(n)\n"
        "    print('end', file=sys.stderr, flush=True)\n"
    )
    traced = subprocess.run(
        [
            *(
                "strace",
                "-f",
                "--seccomp-bpf",
                "-e",
                "trace=write,fsync,fdatasync,msync",
            ),
            *(sys.executable, "-c", program),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if "begin" not in traced.stderr:
        pytest.skip(f"strace is not allowed here: {traced.stderr[-200:]}")
    during = traced.stderr.partition('"begin')[2].partition('"end')[0]
    return during.count("sync(")


@pytest.mark.linux
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize(("fsync", "syncs"), [(True, 3), (False, 0)])
def test_the_kernel_is_asked_for_as_many_syncs_as_the_mode_says(tmp_path, fsync, syncs):
    assert kernel_syncs(tmp_path / "traced", tmp_path, fsync) == syncs


def test_without_fsync_nothing_is_synced(open_queue, disk):
    queue = open_queue(fsync=False)
    del disk.calls[:]

    queue.enqueue(1)
    queue.enqueue_many([2, 3])
    queue.lease_one().ack()

    assert disk.calls
    assert "sync" not in disk.calls


def test_changing_the_argument_afterwards_changes_nothing(queue):
    value = {"list": [1, (2,)], "deep": {"a": []}}

    job = queue.enqueue(value)
    jobs = queue.enqueue_many([value])
    value["list"].append("more")
    value["deep"]["a"].append("more")

    expected = {"list": [1, [2]], "deep": {"a": []}}
    assert job.payload == expected == jobs[0].payload
    assert [found.payload for found in queue.lease(2)] == [expected, expected]


def test_a_payload_that_cannot_be_stored_is_refused_before_anything_is_written(
    queue, directory
):
    before = size_of(directory)

    with pytest.raises(SerializationError, match=r"payload\['when'\]"):
        queue.enqueue({"when": {1}})
    with pytest.raises(SerializationError, match=r"payloads\[1\]\['when'\]"):
        queue.enqueue_many([1, {"when": b""}, 3])
    with pytest.raises(SerializationError, match="8388608"):
        queue.enqueue("x" * 2**23)

    assert size_of(directory) == before
    assert queue.stats().total == 0


@pytest.mark.parametrize(
    ("options", "error", "name"),
    [
        ({"priority": True}, TypeError, "priority"),
        ({"priority": False}, TypeError, "priority"),
        ({"priority": 1.0}, TypeError, "priority"),
        ({"priority": None}, TypeError, "priority"),
        ({"priority": 2**15}, ValueError, "priority"),
        ({"priority": -(2**15) - 1}, ValueError, "priority"),
        ({"delay": "1"}, TypeError, "delay"),
        ({"delay": True}, TypeError, "delay"),
        ({"delay": None}, TypeError, "delay"),
        ({"delay": float("nan")}, ValueError, "delay"),
        ({"delay": float("inf")}, ValueError, "delay"),
        ({"delay": 1e13}, ValueError, "10000"),
        ({"max_attempts": 0}, ValueError, "max_attempts"),
        ({"max_attempts": True}, TypeError, "max_attempts"),
        ({"max_attempts": 2.0}, TypeError, "max_attempts"),
        ({"job_id": 42}, TypeError, "job_id"),
        ({"job_id": ""}, ValueError, "job_id"),
        ({"job_id": "x" * 201}, ValueError, "job_id"),
        ({"job_id": "a\nb"}, ValueError, "job_id"),
        ({"timeout": "1"}, TypeError, "timeout"),
        ({"timeout": float("nan")}, ValueError, "timeout"),
    ],
)
def test_a_bad_argument_is_refused_before_anything_is_written(
    queue, directory, options, error, name
):
    before = size_of(directory)

    with pytest.raises(error, match=name):
        queue.enqueue(1, **options)
    if "job_id" in options:
        options = {"job_ids": [None, options["job_id"]]}
    with pytest.raises(error, match=name):
        queue.enqueue_many([1, 2], **options)

    assert size_of(directory) == before


@pytest.mark.parametrize("priority", [-(2**15), 2**15 - 1])
def test_the_outermost_priorities_are_kept(queue, priority):
    job = queue.enqueue(1, priority=priority)

    assert queue.get(job.id).priority == priority
    assert queue.lease_one().priority == priority


def test_no_payloads_are_no_jobs_and_no_write(queue, directory):
    before = size_of(directory)

    assert queue.enqueue_many([]) == []
    assert size_of(directory) == before


def test_the_options_of_a_batch_hold_for_each_of_its_jobs(queue):
    jobs = queue.enqueue_many(iter("abc"), priority=3, delay=60, max_attempts=2)

    assert [job.payload for job in jobs] == ["a", "b", "c"]
    assert {(job.priority, job.max_attempts) for job in jobs} == {(3, 2)}
    assert queue.stats() == QueueStats(0, 3, 0, 0, 0, 3)


# --- ids ----------------------------------------------------------------------


@pytest.mark.parametrize("state", list(JobState)[:4])
def test_a_given_id_is_enqueued_once_whatever_became_of_it(queue, state):
    queue.enqueue({"charge": 500}, job_id="order-42")
    if state is not JobState.READY:
        job = queue.lease_one()
        if state is JobState.DONE:
            job.ack()
        elif state is JobState.DEAD:
            job.fail()

    again = queue.enqueue({"charge": 1}, job_id="order-42", priority=9)

    assert (again.id, again.payload, again.state) == (
        "order-42",
        {"charge": 500},
        state,
    )
    assert again.priority == 0
    assert queue.stats().total == 1


def test_ids_may_be_given_to_some_of_a_batch_and_repeat(queue):
    queue.enqueue("old", job_id="a")

    jobs = queue.enqueue_many(["1", "2", "3", "4"], job_ids=["a", "b", None, "b"])

    assert [job.payload for job in jobs] == ["old", "2", "3", "2"]
    assert ids(jobs)[:2] == ["a", "b"]
    assert jobs[1].id == jobs[3].id
    assert queue.stats().total == 3


def test_as_many_ids_as_payloads(queue):
    with pytest.raises(ValueError, match="2 payloads, but 1 job_ids"):
        queue.enqueue_many([1, 2], job_ids=["a"])


def test_an_id_is_unique_in_its_queue_only(open_queue):
    emails, thumbs = open_queue("emails"), open_queue("thumbs")

    emails.enqueue("mail", job_id="1")
    thumbs.enqueue("thumb", job_id="1")

    assert (emails.get("1").payload, thumbs.get("1").payload) == ("mail", "thumb")


@pytest.mark.parametrize(
    "job_id", ["x" * 200, "\U0001f600" * 200, " ", "../x", "%", "0" * 32, "a" * 32]
)
def test_any_printable_text_can_be_an_id(queue, job_id):
    queue.enqueue("other")

    assert queue.enqueue(1, job_id=job_id).id == job_id
    assert queue.get(job_id).payload == 1
    assert queue.enqueue(2, job_id=job_id).payload == 1


def test_the_id_that_the_queue_made_may_be_given_too(queue):
    """A made id finds its job by position; a given one of that text is another job."""
    made = queue.enqueue("made")

    again = queue.enqueue("given", job_id=made.id)

    assert again.id == made.id
    assert queue.get(made.id).payload in {"made", "given"}


def test_threads_that_give_the_same_id_at_once_make_one_job(queue):
    with ThreadPoolExecutor(8) as threads:
        jobs = list(
            threads.map(lambda n: queue.enqueue(n, job_id=str(n % 5)), range(80))
        )

    assert queue.stats().total == 5
    assert len({(job.id, job.payload) for job in jobs}) == 5


# --- order and time -----------------------------------------------------------


@settings(max_examples=30)
@given(priorities=st.lists(st.integers(-3, 3), min_size=1, max_size=40))
def test_jobs_are_leased_by_priority_then_in_the_order_of_their_enqueues(
    priorities, tmp_path_factory
):
    place = tmp_path_factory.mktemp("order")
    with Queue(place / "jobs", index_directory=place, fsync=False) as queue:
        for number, priority in enumerate(priorities):
            queue.enqueue(number, priority=priority)

        leased = [job.payload for job in queue.lease(7)]
        while job := queue.lease_one():
            leased.append(job.payload)

    numbers = range(len(priorities))
    assert leased == sorted(numbers, key=lambda number: (-priorities[number], number))


def test_within_a_priority_the_job_that_was_available_earlier_comes_first(queue, clock):
    queue.enqueue("delayed", delay=20)
    clock.advance(10)
    queue.enqueue("between")
    clock.advance(20)
    queue.enqueue("last")

    assert [job.payload for job in queue.lease(3)] == ["between", "delayed", "last"]


def test_a_delayed_job_is_ready_but_not_there_before_its_time(queue, clock):
    job = queue.enqueue("later", delay=30)

    assert job.state is JobState.READY
    assert job.available_at == pytest.approx(job.enqueued_at + 30)
    assert queue.stats() == QueueStats(0, 1, 0, 0, 0, 1)
    clock.advance(29)
    assert queue.lease_one() is None
    clock.advance(2)
    assert queue.stats() == QueueStats(1, 0, 0, 0, 0, 1)
    assert queue.lease_one().id == job.id


def test_an_urgent_job_that_is_not_due_holds_up_no_other(queue, clock):
    queue.enqueue("urgent", priority=9, delay=60)
    queue.enqueue("ordinary")

    assert queue.lease_one().payload == "ordinary"
    assert queue.lease_one() is None
    queue.enqueue("ordinary, too")
    clock.advance(61)
    assert [job.payload for job in queue.lease(2)] == ["urgent", "ordinary, too"]


def test_a_negative_delay_is_none(queue):
    queue.enqueue("now", delay=-3600)

    assert queue.lease_one().payload == "now"


# --- a full queue -------------------------------------------------------------


def test_a_full_queue_refuses_and_writes_nothing(open_queue, directory):
    queue = open_queue(max_pending=2)
    queue.enqueue_many([1, 2], delay=60)
    before = size_of(directory)

    with pytest.raises(QueueFull, match="2"):
        queue.enqueue(3, block=False)
    with pytest.raises(QueueFull):
        queue.enqueue(3, timeout=0)
    with pytest.raises(QueueFull):
        queue.enqueue(3, timeout=0.03)

    assert size_of(directory) == before


def test_ready_delayed_and_leased_jobs_take_room_finished_ones_do_not(open_queue):
    queue = open_queue(max_pending=3)
    queue.enqueue("delayed", delay=60)
    queue.enqueue_many(["done", "dead"])
    queue.lease_one().ack()
    queue.lease_one().fail()

    queue.enqueue_many(["leased", "ready"], block=False)
    queue.lease_one()

    with pytest.raises(QueueFull):
        queue.enqueue("more", block=False)


def test_a_batch_has_room_as_a_whole_or_not_at_all(open_queue):
    queue = open_queue(max_pending=3)
    queue.enqueue_many([1, 2])

    with pytest.raises(QueueFull):
        queue.enqueue_many([3, 4], block=False)

    assert queue.stats().total == 2


def test_a_batch_that_can_never_fit_does_not_wait(open_queue):
    with pytest.raises(QueueFull):
        open_queue(max_pending=3).enqueue_many(range(4))


def test_a_known_id_needs_no_room(open_queue):
    queue = open_queue(max_pending=1)
    queue.enqueue(1, job_id="a")

    assert queue.enqueue(2, job_id="a", block=False).payload == 1


@pytest.mark.parametrize("state", list(JobState)[:4])
def test_known_ids_need_no_room_in_a_batch_either(open_queue, state):
    queue = open_queue(max_pending=2)
    queue.enqueue("known", job_id="a")
    if state is not JobState.READY:
        job = queue.lease_one()
        if state is JobState.DONE:
            job.ack()
        elif state is JobState.DEAD:
            job.fail()
    pending = 1 if state in {JobState.READY, JobState.LEASED} else 0
    queue.enqueue_many(["more"] * (1 - pending))

    jobs = queue.enqueue_many(["x"] * 3, job_ids=["a", "b", "a"], block=False)
    again = queue.enqueue_many(["x"] * 5, job_ids=list("ababa"), block=False)

    assert [job.payload for job in jobs] == ["known", "x", "known"]
    assert not any(job.created for job in again)


def test_a_queue_may_hold_more_than_a_capacity_that_came_later(open_queue):
    open_queue().enqueue_many(range(3))

    queue = open_queue(max_pending=2)

    assert queue.stats().ready == 3
    with pytest.raises(QueueFull):
        queue.enqueue(3, block=False)
    for job in queue.lease(2):
        job.ack()
    queue.enqueue(3, block=False)


ROOM = {
    "lease": (lambda queue, job: None, 0),
    "nack": (lambda queue, job: job.nack(delay=60), 0),
    "release": (lambda queue, job: job.release(), 0),
    "a lease that ran out": (lambda queue, job: queue.lease_one(), 0),
    "ack": (lambda queue, job: job.ack(), 1),
    "fail": (lambda queue, job: job.fail(), 1),
    "the last nack": (lambda queue, job: (job.nack(), queue.lease_one().nack()), 1),
    "fail and requeue": (lambda queue, job: (job.fail(), queue.requeue_dead()), 0),
    "purge": (lambda queue, job: queue.purge("leased"), 1),
}


@pytest.mark.parametrize("what", ROOM)
def test_what_frees_a_place_in_a_full_queue(open_queue, clock, what):
    act, freed = ROOM[what]
    queue = open_queue(max_pending=1, max_attempts=2)
    queue.enqueue(1)
    job = queue.lease_one(visibility_timeout=10)
    if what == "a lease that ran out":
        clock.advance(11)

    act(queue, job)

    with nullcontext() if freed else pytest.raises(QueueFull):
        queue.enqueue(2, block=False)


def test_trouble_of_the_disk_or_the_lock_is_never_a_full_queue(
    open_queue, directory, disk
):
    queue = open_queue(max_pending=9, lock_timeout=0.01)
    disk.full = True
    with pytest.raises(StorageError):
        queue.enqueue(1)
    disk.full = False
    lock = StoreLock(str(directory), Vfs(), Access())
    with lock.held(1), pytest.raises(LockTimeoutError):
        queue.enqueue(1)
    lock.close()

    assert not issubclass(QueueFull, OSError)
    queue.enqueue(1)


def test_enqueue_waits_for_room(open_queue):
    queue = open_queue(max_pending=1)
    queue.enqueue(1)
    job = queue.lease_one()

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(queue.enqueue, 2)
        assert not waiting.done()
        job.ack()
        assert waiting.result(PATIENCE).payload == 2


def test_dead_letters_do_not_come_back_beyond_the_capacity(open_queue):
    queue = open_queue(max_pending=1)
    queue.enqueue(1)
    queue.lease_one().fail()
    queue.enqueue(2)

    with pytest.raises(QueueFull):
        queue.requeue_dead()

    assert queue.stats().dead == 1


# --- leases -------------------------------------------------------------------


def test_a_lease_hides_the_job_from_everybody_else(queue, open_queue):
    queue.enqueue(1)
    job = queue.lease_one()

    assert (job.state, job.attempts) == (JobState.LEASED, 1)
    assert queue.lease_one() is None
    assert open_queue().lease(5) == []
    assert queue.stats() == QueueStats(0, 0, 1, 0, 0, 1)
    assert queue.get(job.id).state is JobState.LEASED


def test_lease_returns_at_most_what_was_asked_for(queue):
    queue.enqueue_many(range(5))

    assert [len(queue.lease(3)) for _ in range(3)] == [3, 2, 0]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"count": 0}, ValueError),
        ({"count": -1}, ValueError),
        ({"count": True}, TypeError),
        ({"count": 1.0}, TypeError),
        ({"visibility_timeout": 0}, ValueError),
        ({"visibility_timeout": -1}, ValueError),
        ({"visibility_timeout": float("nan")}, ValueError),
        ({"visibility_timeout": "1"}, TypeError),
        ({"wait": "1"}, TypeError),
        ({"wait": False}, TypeError),
        ({"wait": float("nan")}, ValueError),
        ({"wait": -1}, ValueError),
    ],
)
def test_a_bad_wish_is_refused(queue, options, error):
    queue.enqueue(1)

    with pytest.raises(error):
        queue.lease(**options)

    assert queue.stats().ready == 1


def test_a_lease_that_ran_out_is_tried_again_after_the_backoff(open_queue, clock):
    queue = open_queue(visibility_timeout=10, backoff=BackoffPolicy(base=5, jitter=0))
    queue.enqueue(1)
    queue.lease_one()

    clock.advance(9)
    assert queue.lease_one() is None
    clock.advance(2)
    assert queue.lease_one() is None  # this look takes the lease back
    assert queue.stats().delayed == 1
    clock.advance(6)
    job = queue.lease_one()

    assert job.attempts == 2
    assert job.last_error == "lease expired: worker lost"


def test_a_lease_that_ran_out_counts_as_ready_before_anybody_took_it_back(queue, clock):
    queue.enqueue(1)
    queue.lease_one()
    clock.advance(31)

    assert queue.stats() == QueueStats(1, 0, 0, 0, 0, 1)


def test_a_lease_that_ran_out_on_the_last_attempt_is_a_dead_letter(open_queue, clock):
    queue = open_queue(max_attempts=2)
    queue.enqueue(1)
    for _ in range(2):
        assert queue.lease_one().attempts
        clock.advance(31)

    assert queue.lease_one() is None
    (job,) = queue.dlq()
    assert (job.state, job.attempts) == (JobState.DEAD, 2)
    assert job.last_error == "lease expired: worker lost"


@pytest.mark.parametrize("seconds", [-3600, 3600, 10 * 365 * 86400])
def test_a_step_of_the_wall_clock_neither_ends_nor_prolongs_a_lease(
    queue, clock, seconds
):
    queue.enqueue(1)
    queue.lease_one()
    clock.wall = lambda: time.time() + seconds

    assert queue.lease_one() is None
    assert queue.stats().leased == 1
    clock.advance(31)
    assert queue.lease_one().attempts == 2


def test_a_lease_may_have_its_own_length(queue, clock):
    queue.enqueue_many([1, 2])
    queue.lease_one(visibility_timeout=5)
    queue.lease_one(visibility_timeout=500)
    clock.advance(100)

    assert [job.payload for job in queue.lease(5)] == [1]


def test_extend_gives_more_time_and_never_less(queue, clock):
    queue.enqueue(1)
    job = queue.lease_one(visibility_timeout=10)

    job.extend(100)
    job.extend(1)
    clock.advance(99)
    assert queue.lease_one() is None
    clock.advance(2)
    assert queue.lease_one().attempts == 2


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_extend_needs_seconds_above_zero(queue, seconds):
    queue.enqueue(1)

    with pytest.raises(ValueError, match="seconds"):
        queue.lease_one().extend(seconds)


def test_ack_is_accepted_after_the_deadline_while_nobody_else_was_given_the_job(
    queue, clock
):
    queue.enqueue(1)
    job = queue.lease_one()
    clock.advance(3600)

    job.ack()

    assert queue.stats().done == 1


VERBS = {
    "ack": Queue.ack,
    "nack": Queue.nack,
    "fail": Queue.fail,
    "release": Queue.release,
    "extend": lambda queue, job: queue.extend(job, 1),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_who_lost_the_lease_can_do_nothing_to_the_job(queue, clock, verb):
    queue.enqueue(1)
    late = queue.lease_one()
    clock.advance(31)
    holder = queue.lease_one()

    with pytest.raises(NotLeasedError):
        verb(queue, late)

    holder.ack()
    with pytest.raises(NotLeasedError):
        verb(queue, late)
    assert queue.stats() == QueueStats(0, 0, 0, 1, 0, 1)


def test_repeating_an_ack_with_its_token_changes_nothing(queue, directory):
    queue.enqueue(1)
    job = queue.lease_one()
    job.ack()
    before = size_of(directory)

    job.ack()

    assert size_of(directory) == before


@pytest.mark.parametrize("end", ["ack", "nack", "fail", "release"])
@pytest.mark.parametrize("verb", ["nack", "fail", "release", "extend"])
def test_a_settled_job_cannot_be_settled_otherwise(queue, end, verb):
    queue.enqueue(1)
    job = queue.lease_one()
    VERBS[end](queue, job)

    with pytest.raises(NotLeasedError):
        VERBS[verb](queue, job)


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_job_of_another_queue_is_not_ours(open_queue, verb):
    emails, thumbs = open_queue("emails"), open_queue("thumbs")
    emails.enqueue(1)
    job = emails.lease_one()

    with pytest.raises(NotLeasedError):
        verb(thumbs, job)

    assert emails.stats().leased == 1


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_job_of_another_store_is_not_ours(tmp_path, verb):
    """Two stores with the same past give out the same tokens."""
    with (
        Queue(tmp_path / "a", index_directory=tmp_path) as a,
        Queue(tmp_path / "b", index_directory=tmp_path) as b,
    ):
        for queue in (a, b):
            queue.enqueue(1)
        ours = a.lease_one()
        theirs = replace(b.lease_one(), position=ours.position, held=ours.held)

        with pytest.raises(NotLeasedError):
            verb(a, theirs)

        assert a.stats().leased == 1
        verb(a, ours)


def test_a_job_may_be_settled_through_another_queue_object(open_queue):
    first = open_queue()
    first.enqueue(1)
    job = first.lease_one()
    first.close()

    open_queue().ack(job)

    assert open_queue().stats().done == 1


def test_lease_waits_until_a_job_is_enqueued(queue):
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(queue.lease_one, wait=PATIENCE)
        queue.enqueue("there")
        assert waiting.result(PATIENCE / 2).payload == "there"


def test_lease_waits_until_a_job_is_due(queue):
    queue.enqueue("soon", delay=0.05)

    assert queue.lease_one(wait=PATIENCE).payload == "soon"


def test_lease_waits_no_longer_than_asked(queue):
    assert queue.lease(3, wait=0.01) == []


# --- failing ------------------------------------------------------------------


def test_a_failed_job_waits_for_the_backoff_of_its_attempt(open_queue, clock):
    queue = open_queue(backoff=BackoffPolicy(base=10, factor=3, jitter=0))
    queue.enqueue(1)

    for wait in (10, 30, 90):
        job = queue.lease_one().nack(error="down")
        assert job.available_at == pytest.approx(clock.wall() + wait, abs=5)
        assert job.state is JobState.READY
        assert queue.stats().delayed == 1
        clock.advance(wait - 1)
        assert queue.lease_one() is None
        clock.advance(2)


def test_nack_may_say_the_delay(open_queue, clock):
    queue = open_queue(backoff=BackoffPolicy(base=1000, jitter=0))
    queue.enqueue(1)

    queue.lease_one().nack(delay=0)
    queue.lease_one().nack(delay=-5)
    queue.lease_one().nack(delay=60)

    assert queue.lease_one() is None
    clock.advance(61)
    assert queue.lease_one().attempts == 4


def test_a_delay_that_nack_names_buys_no_attempt(queue):
    queue.enqueue(1, max_attempts=2)
    queue.lease_one().nack(delay=0)

    assert queue.lease_one().nack(delay=60).state is JobState.DEAD


def test_the_backoff_is_drawn_once_and_stands_in_the_log(open_queue):
    """Whoever reads the log later waits for as long as whoever wrote it."""
    queue = open_queue(backoff=BackoffPolicy(base=1000, jitter=1))
    queue.enqueue(1)
    due = queue.lease_one().nack().available_at

    for _ in range(3):
        queue.rebuild_index()
        assert queue.list_jobs()[0].available_at == due


def test_a_job_that_fails_overtakes_nobody_and_is_not_starved(queue, clock):
    queue.enqueue_many(["bad", "a", "b"])
    order = []
    while job := queue.lease_one():
        order.append(job.payload)
        clock.advance(1)
        if job.payload == "bad" and job.attempts < 3:
            job.nack(delay=0)
            queue.enqueue(f"after {job.attempts}")
        else:
            job.ack()

    assert order == ["bad", "a", "b", "bad", "after 1", "bad", "after 2"]


@pytest.mark.parametrize("delay", [float("nan"), float("inf"), "1", True])
def test_nack_refuses_a_delay_that_is_none(queue, delay):
    queue.enqueue(1)

    with pytest.raises((ValueError, TypeError), match="delay"):
        queue.lease_one().nack(delay=delay)


@pytest.mark.parametrize("most", [1, 2, 4])
def test_after_max_attempts_the_job_is_dead_with_the_last_error(open_queue, most):
    queue = open_queue(max_attempts=most)
    queue.enqueue(1)

    states = [queue.lease_one().nack(error=f"no {n}").state for n in range(most)]

    assert states == ["ready"] * (most - 1) + ["dead"]
    (job,) = queue.dlq()
    assert (job.attempts, job.last_error) == (most, f"no {most - 1}")
    assert queue.lease_one() is None


def test_an_enqueue_may_allow_fewer_attempts(queue):
    queue.enqueue(1, max_attempts=1)

    assert queue.lease_one().nack().state is JobState.DEAD


@pytest.mark.parametrize(
    "error", ["half \ud800 pair", "x" * 20_000_000, "", None, "ü\n\x00"]
)
def test_any_error_text_can_be_kept_in_part(queue, error):
    queue.enqueue(1)

    queue.lease_one().fail(error=error)

    (job,) = queue.dlq()
    text = job.last_error or ""
    text.encode()
    assert len(text) <= 10_000
    assert text[:5] == (error or "")[:5]


def test_fail_buries_the_job_whatever_attempts_it_has_left(queue):
    queue.enqueue(1)

    job = queue.lease_one().fail(error="bad address")

    assert (job.state, job.attempts, job.max_attempts) == (JobState.DEAD, 1, 5)


def test_release_gives_back_at_once_to_the_old_place(queue):
    queue.enqueue_many(["first", "second"])

    queue.lease_one().release()

    assert [(job.payload, job.attempts) for job in queue.lease(2)] == [
        ("first", 1),
        ("second", 1),
    ]


# --- processing ---------------------------------------------------------------


def test_processing_acks_when_the_block_ends(queue):
    queue.enqueue("a")

    with queue.processing() as job:
        assert job.payload == "a"
        assert queue.stats().leased == 1

    assert queue.stats().done == 1


class SpeechlessError(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


@pytest.mark.parametrize(
    "error", [ValueError("no"), SystemExit(3), KeyboardInterrupt()]
)
def test_processing_nacks_and_raises_again(queue, error):
    queue.enqueue("a")

    with pytest.raises(type(error)), queue.processing():
        raise error

    (job,) = queue.list_jobs()
    assert (job.state, job.attempts) == (JobState.READY, 1)
    assert type(error).__name__ in job.last_error


def test_processing_nacks_an_exception_that_has_no_text(queue):
    queue.enqueue("a")

    with pytest.raises(SpeechlessError), queue.processing():
        raise SpeechlessError

    assert queue.get(queue.list_jobs()[0].id).last_error.startswith("SpeechlessError")


def test_processing_raises_the_error_of_the_block_even_when_the_lease_was_lost(
    queue, clock
):
    queue.enqueue("a")

    def lose_the_lease_and_fail():
        with queue.processing():
            clock.advance(31)
            assert queue.lease_one().attempts == 2
            raise ValueError("of the block")

    with pytest.raises(ValueError, match="of the block"):
        lose_the_lease_and_fail()


def test_processing_with_nothing_to_lease_is_an_error(queue):
    with pytest.raises(QueueEmpty), queue.processing():
        pytest.fail("there was no job")
    with pytest.raises(NobrokerError), queue.processing(wait=0.01):
        pytest.fail("there was no job")


# --- looking ------------------------------------------------------------------


def one_of_each(queue):
    queue.enqueue("delayed", delay=600)
    queue.enqueue_many(["done", "dead", "leased", "ready"])
    queue.lease_one().ack()
    queue.lease_one().fail(error="no")
    queue.lease_one()


def test_stats_count_the_jobs_of_each_state(queue):
    assert queue.stats() == QueueStats(0, 0, 0, 0, 0, 0)

    one_of_each(queue)

    assert repr(queue.stats()) == (
        "QueueStats(ready=1, delayed=1, leased=1, done=1, dead=1, total=5)"
    )


@pytest.mark.parametrize(
    ("state", "payloads"),
    [
        (None, ["delayed", "done", "dead", "leased", "ready"]),
        ("ready", ["delayed", "ready"]),
        (JobState.LEASED, ["leased"]),
        ("done", ["done"]),
        (JobState.DEAD, ["dead"]),
    ],
)
def test_jobs_are_listed_by_state_in_the_order_of_their_enqueues(
    queue, state, payloads
):
    one_of_each(queue)

    jobs = queue.list_jobs(state)

    assert [job.payload for job in jobs] == payloads
    assert state is None or {job.state for job in jobs} == {state}


def test_a_list_may_be_taken_in_parts(queue):
    queue.enqueue_many(range(10))

    parts = [queue.list_jobs(limit=4, offset=offset) for offset in (0, 4, 8, 12)]

    assert [[job.payload for job in part] for part in parts] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9],
        [],
    ]
    assert queue.list_jobs(limit=0) == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"state": "unknown"}, ValueError),
        ({"limit": -1}, ValueError),
        ({"offset": -1}, ValueError),
        ({"limit": 1.5}, TypeError),
        ({"offset": True}, TypeError),
    ],
)
def test_a_list_refuses_bad_arguments(queue, options, error):
    with pytest.raises(error):
        queue.list_jobs(**options)


def test_a_job_that_is_not_there_is_not_found(queue, open_queue):
    open_queue("other").enqueue(1, job_id="a")

    for job_id in ("a", "0" * 32, "", "x" * 1000):
        with pytest.raises(JobNotFoundError):
            queue.get(job_id)


# --- dead letters -------------------------------------------------------------


def bury(queue, count):
    jobs = queue.enqueue_many(range(count))
    for job in queue.lease(count):
        job.fail(error=f"no {job.payload}")
    return jobs


def test_dead_letters_are_listed_with_their_errors(queue):
    bury(queue, 3)

    assert [job.last_error for job in queue.dlq()] == ["no 0", "no 1", "no 2"]
    assert [job.payload for job in queue.dlq(limit=1, offset=1)] == [1]


def test_all_dead_letters_come_back_with_their_attempts_reset(queue, open_queue):
    bury(open_queue("other"), 2)
    bury(queue, 1200)

    assert queue.requeue_dead() == 1200
    assert queue.requeue_dead() == 0
    assert queue.stats() == QueueStats(1200, 0, 0, 0, 0, 1200)
    assert open_queue("other").stats().dead == 2
    job = queue.lease_one()
    assert (job.attempts, job.last_error) == (1, None)


def test_one_dead_letter_comes_back(queue):
    jobs = bury(queue, 3)

    assert queue.requeue_dead(jobs[1].id) == 1
    assert [job.payload for job in queue.list_jobs("ready")] == [1]


def test_a_job_that_comes_back_is_the_same_one(queue, clock):
    queue.enqueue({"n": 1}, job_id="a", priority=3, max_attempts=2)
    made = queue.get("a")
    queue.lease_one().nack(error="no")
    clock.advance(60)
    queue.lease_one().nack(error="no")

    queue.requeue_dead("a")

    again = queue.get("a")
    for name in ("id", "payload", "priority", "max_attempts", "enqueued_at"):
        assert getattr(again, name) == getattr(made, name), name
    assert (again.state, again.attempts, again.last_error) == ("ready", 0, None)
    assert again.available_at > made.available_at


def test_only_a_dead_job_can_be_requeued(queue):
    job = queue.enqueue(1)

    with pytest.raises(NotLeasedError, match="not dead but ready"):
        queue.requeue_dead(job.id)
    with pytest.raises(JobNotFoundError):
        queue.requeue_dead("unknown")


# --- opening and closing ------------------------------------------------------


def test_named_queues_of_one_directory_do_not_touch_each_other(open_queue):
    emails, thumbs = open_queue("emails"), open_queue("thumbs")
    emails.enqueue("mail")
    thumbs.enqueue_many(["thumb"] * 3)

    assert (emails.stats().total, thumbs.stats().total) == (1, 3)
    assert [job.payload for job in emails.lease(9)] == ["mail"]
    assert emails.lease_one() is None


@pytest.mark.parametrize(
    "call",
    [
        lambda queue: queue.enqueue(1),
        lambda queue: queue.enqueue_many([1]),
        lambda queue: queue.enqueue_many([]),
        lambda queue: queue.lease(),
        lambda queue: queue.lease_one(wait=1),
        lambda queue: queue.stats(),
        lambda queue: queue.get("a"),
        lambda queue: queue.list_jobs(),
        lambda queue: queue.dlq(),
        lambda queue: queue.requeue_dead(),
    ],
)
def test_a_closed_queue_says_so(queue, call):
    queue.close()
    queue.close()

    with pytest.raises(QueueClosedError):
        call(queue)


def test_a_job_of_a_closed_queue_says_so(queue):
    queue.enqueue(1)
    job = queue.lease_one()
    queue.close()

    with pytest.raises(QueueClosedError):
        job.ack()


@pytest.mark.parametrize(
    "wait",
    [lambda queue: queue.enqueue(2), lambda queue: queue.lease(wait=2 * PATIENCE)],
    ids=["for room", "for a job"],
)
def test_closing_ends_every_wait(open_queue, monkeypatch, wait):
    monkeypatch.setattr("django_nobroker.plain.consuming._FALLBACK", 0.05)
    queue = open_queue(max_pending=1)
    queue.enqueue(1, delay=600)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(wait, queue)
        with pytest.raises(TimeoutError):
            waiting.result(0.1)
        queue.close()
        with pytest.raises(QueueClosedError):
            waiting.result(PATIENCE)


def test_closing_one_queue_leaves_the_others_of_the_store_open(open_queue):
    first, second = open_queue(), open_queue()
    first.close()

    second.enqueue(1)
    assert second.lease_one().payload == 1


def test_a_block_closes_the_queue(tmp_path):
    with Queue(tmp_path / "jobs", index_directory=tmp_path) as queue:
        queue.enqueue(1)
    with pytest.raises(QueueClosedError):
        queue.stats()
    with Queue(tmp_path / "jobs", index_directory=tmp_path) as queue:
        assert queue.stats().ready == 1
        assert not queue.recovery.repaired
        assert queue.recovery.describe()


def test_a_closed_queue_leaves_no_descriptor_open(tmp_path):
    def use_one():
        with Queue(tmp_path / "jobs", index_directory=tmp_path) as queue:
            queue.enqueue_many(range(3))
            queue.lease_one(wait=1).ack()
            queue.stats()

    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        use_one()
    gc.collect()

    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("options", "error", "name"),
    [
        ({"name": ""}, ValueError, "name"),
        ({"name": 1}, TypeError, "name"),
        ({"name": "a\x00b"}, ValueError, "name"),
        ({"visibility_timeout": 0}, ValueError, "visibility_timeout"),
        ({"visibility_timeout": "30"}, TypeError, "visibility_timeout"),
        ({"max_attempts": 0}, ValueError, "max_attempts"),
        ({"max_attempts": 1.5}, TypeError, "max_attempts"),
        ({"max_pending": 0}, ValueError, "max_pending"),
        ({"max_pending": True}, TypeError, "max_pending"),
        ({"lock_timeout": float("nan")}, ValueError, "lock_timeout"),
        ({"backoff": {"base": 1}}, TypeError, "backoff"),
        ({"backoff": 5}, TypeError, "backoff"),
        ({"fsync": "no"}, TypeError, "fsync"),
        ({"fsync": None}, TypeError, "fsync"),
        ({"read_only": 1}, TypeError, "read_only"),
    ],
)
def test_a_bad_option_is_refused_before_the_store_is_made(
    tmp_path, options, error, name
):
    with pytest.raises(error, match=name):
        Queue(tmp_path / "jobs", **options)

    assert not (tmp_path / "jobs").exists()


def test_a_file_is_no_store(tmp_path):
    (tmp_path / "jobs").write_text("hello")

    with pytest.raises(StorageError, match="jobs") as caught:
        Queue(tmp_path / "jobs")

    assert isinstance(caught.value, OSError)


def test_a_foreign_log_is_refused_and_left_alone(tmp_path):
    log = tmp_path / "jobs" / f"{0:020}.log"
    log.parent.mkdir()
    log.write_text("this is somebody else's log\n" * 10)

    with pytest.raises(CorruptLogError):
        Queue(tmp_path / "jobs")

    assert log.read_text() == "this is somebody else's log\n" * 10


def test_a_relative_path_is_meant_from_where_the_queue_was_opened(
    tmp_path, monkeypatch
):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "index").mkdir()
    monkeypatch.chdir(tmp_path)
    with Queue("jobs", index_directory="index") as queue:
        monkeypatch.chdir(tmp_path / "elsewhere")
        queue.enqueue(1)
        assert queue.stats().ready == 1

    assert not list((tmp_path / "elsewhere").iterdir())


# --- trouble ------------------------------------------------------------------


def test_a_full_disk_is_an_error_and_the_queue_goes_on(queue, disk):
    queue.enqueue("before")
    disk.full = True
    with pytest.raises(StorageError, match="No space left") as caught:
        queue.enqueue("refused")
    with pytest.raises(StorageError):
        queue.enqueue_many(["refused"] * 3)
    disk.full = False

    queue.enqueue("after")

    assert isinstance(caught.value, OSError)
    assert [job.payload for job in queue.lease(9)] == ["before", "after"]


def test_after_a_failed_sync_nothing_is_acknowledged_any_more(queue, disk):
    queue.enqueue("before")
    disk.broken = True
    with pytest.raises(StoreFailedError):
        queue.enqueue("lost")
    disk.broken = False

    with pytest.raises(StoreFailedError):
        queue.enqueue("after")
    with pytest.raises(StoreFailedError):
        queue.lease_one()


def test_a_store_that_was_deleted_is_an_error_and_not_a_lost_job(queue, directory):
    queue.enqueue(1)
    directory.rename(directory.with_name("gone"))

    with pytest.raises(StorageError, match="gone"):
        queue.enqueue(2)


def test_the_index_may_be_deleted_at_any_time(tmp_path, queue):
    queue.enqueue_many(range(3))
    queue.lease_one().ack()
    for path in tmp_path.glob("nobroker-*/*/*"):
        path.unlink()

    assert queue.stats().total == 3
    queue.enqueue(4, job_id="a")
    assert queue.lease_one().payload == 1


def test_threads_share_a_queue_and_no_job_is_given_twice(queue):
    taken = []
    done = threading.Event()

    def take():
        while True:
            jobs = queue.lease(3)
            for job in jobs:
                taken.append(job.payload)
                job.ack()
            if not jobs and done.is_set():
                return

    with ThreadPoolExecutor(8) as threads:
        takers = [threads.submit(take) for _ in range(4)]
        makers = [
            threads.submit(
                lambda first: [queue.enqueue(first + n) for n in range(25)], first
            )
            for first in range(0, 100, 25)
        ]
        for maker in makers:
            maker.result(PATIENCE)
        done.set()
        for taker in takers:
            taker.result(PATIENCE)

    assert sorted(taken) == list(range(100))
    assert queue.stats() == QueueStats(0, 0, 0, 100, 0, 100)


def test_two_stores_are_open_at_once(tmp_path):
    with (
        Queue(tmp_path / "a", index_directory=tmp_path) as a,
        Queue(tmp_path / "b", index_directory=tmp_path) as b,
    ):
        a.enqueue("a")
        b.enqueue_many(["b", "b"])

        assert (a.stats().ready, b.stats().ready) == (1, 2)
