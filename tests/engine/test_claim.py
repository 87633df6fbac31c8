"""Which job is next, for how long, and what becomes of it if its worker is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_nobroker.engine import claim as claims
from django_nobroker.engine import doorbell, enqueue, history
from django_nobroker.engine.changes import Changes
from django_nobroker.engine.control import DURABLE
from django_nobroker.engine.errors import NotLeasedError
from django_nobroker.engine.locks import StoreLock
from django_nobroker.engine.record import Lease, Nack
from django_nobroker.engine.vfs import Access
from tests.faults.files import FaultyFiles

from .driving import (
    TIMEOUT,
    ack,
    add,
    add_many,
    counts,
    look_for_work,
    nack,
    new,
    payloads,
    records,
    row,
    take,
    take_one,
)


def order_taken(store, **wish):
    """Claim one job after another and return their payloads."""
    taken = []
    while jobs := take(store, **wish):
        taken += [int(history.payload(store, job.row)) for job in jobs]
    return taken


# --- the order ------------------------------------------------------------------


def test_the_highest_priority_is_first(store):
    for n, priority in enumerate([0, 5, -32768, 32767, 5]):
        add(store, n, priority=priority)

    assert order_taken(store) == [3, 1, 4, 0, 2]


def test_of_one_priority_the_one_available_longest_is_first(store, clock):
    add(store, 0, delay=30)
    add(store, 1, delay=10)
    add(store, 2, delay=20)
    clock.advance(40)
    add(store, 3)

    assert order_taken(store) == [1, 2, 0, 3]


def test_of_one_priority_and_time_the_one_enqueued_first_is_first(store):
    for n in range(20):
        add(store, n)

    assert order_taken(store) == list(range(20))


def test_a_batch_keeps_its_order(store):
    add_many(store, range(20))

    assert order_taken(store, count=7) == list(range(20))


def test_jobs_of_several_queues_are_taken_as_if_they_were_one(store, clock):
    for n, (queue, priority) in enumerate(
        [("b", 0), ("a", 0), ("c", 5), ("a", -1), ("b", 5), ("a", 5)]
    ):
        add(store, n, queue=queue, priority=priority)

    assert order_taken(store) == [2, 4, 5, 0, 1, 3]


def test_only_the_queues_asked_for_are_looked_at(store):
    for n, queue in enumerate("abcab"):
        add(store, n, queue=queue)

    assert order_taken(store, queues=["a", "unheard-of"]) == [0, 3]
    assert order_taken(store, exclude=frozenset({"c"})) == [1, 4]
    assert order_taken(store, queues=["c"], exclude=frozenset({"c"})) == []


def test_no_more_are_taken_than_asked_for(store):
    add_many(store, range(5))

    assert [len(take(store, 2)) for _ in range(4)] == [2, 2, 1, 0]


# --- waiting ------------------------------------------------------------------------


def test_a_job_for_later_is_not_taken_before(store, clock):
    add(store, 0, delay=10)

    assert take(store) == []
    assert counts(store) == {"delayed": 1}
    clock.advance(9.999)
    assert take(store) == []
    clock.advance(0.001)
    assert len(take(store)) == 1


def test_a_retry_waits_on_the_boot_clock(store, clock):
    add(store)
    nack(store, take_one(store), delay=10.0)

    clock.step_wall(1000)
    assert take(store) == []
    clock.step_wall(-5000)
    clock.advance(10)
    assert len(take(store)) == 1


def test_a_job_without_delay_is_ready_whatever_the_wall_clock_says(store, clock):
    add(store)
    clock.step_wall(-100_000)

    assert len(take(store)) == 1


def test_a_retry_does_not_wait_any_more_after_a_restart(open_store, store, clock):
    add(store)
    nack(store, take_one(store), delay=100.0)
    store.close()
    clock.restart()

    again = open_store(clock=clock)

    assert len(take(again)) == 1


def test_a_look_that_finds_nothing_tells_when_to_look_again(store, clock):
    nothing = look_for_work(store)
    add(store, 0, delay=50)
    delayed = look_for_work(store)
    add(store, 1)
    job = take_one(store, seconds=20.0)
    leased = look_for_work(store)
    nack(store, job, delay=5.0)
    retried = look_for_work(store)

    boot = clock.boot()
    assert nothing.next_due is None
    assert not nothing.retries
    assert delayed.next_due == pytest.approx(boot + 50)
    assert not delayed.retries
    assert leased.next_due == boot + 20
    assert retried.next_due == boot + 5
    assert retried.retries


def test_retries_of_other_queues_are_not_counted(store):
    add(store, queue="other")
    nack(store, take_one(store), delay=5.0)

    assert not look_for_work(store, queues=["q"]).retries
    assert look_for_work(store, queues=["other"]).retries


# --- the lease ---------------------------------------------------------------------


def test_a_leased_job_is_nobody_elses(store, clock):
    add(store)
    job = take_one(store, seconds=30.0, worker="w1")

    assert job.until == clock.boot() + 30
    assert take(store) == []
    lease = records(store.directory)[-1]
    assert isinstance(lease, Lease)
    assert (lease.worker, lease.attempt, lease.until) == ("w1", 1, job.until)
    assert job.token == row(store, job.position).lease_token


def test_a_lease_is_as_long_as_promised_after_a_long_wait_for_the_lock(store, clock):
    add(store)
    lock = StoreLock(store.directory, FaultyFiles(), Access())
    with ThreadPoolExecutor(1) as threads:
        with lock.held(1):
            taken = threads.submit(take_one, store, seconds=30.0)
            with pytest.raises(TimeoutError):
                taken.result(0.05)
            clock.advance(100)
        assert taken.result(TIMEOUT).until == clock.boot() + 30
    lock.close()


def test_each_lease_has_a_token_of_its_own(store):
    add(store)
    tokens = []
    for _ in range(3):
        job = take_one(store)
        tokens.append(job.token)
        if len(tokens) < 3:
            nack(store, job)

    assert len(set(tokens)) == 3
    assert tokens == sorted(tokens)


def test_a_lease_needs_no_sync(store, files):
    add(store)
    files.forget()

    take_one(store)

    assert files.count("fdatasync", "fsync") == 0


def test_only_durable_jobs_are_given_out(store, files):
    """No effect without a durable cause: the enqueue is synced first."""
    job = add(store, durable=False)
    assert store.control.words[DURABLE] <= job.at
    files.forget()

    (taken,) = take(store)

    assert store.control.words[DURABLE] > job.at
    names = files.names()
    assert names.index("fdatasync") < len(names) - 1 - names[::-1].index("write")
    assert taken.position == job.at


def test_a_flood_that_was_never_synced_is_not_looked_at_job_by_job(store, monkeypatch):
    jobs = [new(store, n) for n in range(1000)]
    enqueue.place(store, jobs, durable=False, timeout=TIMEOUT)
    looked_at = []
    row = Changes.row

    def counting(self, position):
        looked_at.append(position)
        return row(self, position)

    monkeypatch.setattr(Changes, "row", counting)

    assert history.payload(store, take_one(store).row) == b"0"
    assert len(looked_at) < 500


def test_a_durable_job_is_taken_before_one_that_waits_for_its_sync(store, files):
    add(store, 0)
    add(store, 1, durable=False, priority=9)
    files.forget()

    assert history.payload(store, take_one(store).row) == b"0"
    assert files.count("fdatasync") == 0


def test_without_durability_jobs_are_given_out_at_once(store, files):
    add(store, durable=False)
    files.forget()

    assert len(take(store, durable_only=False)) == 1
    assert files.count("fdatasync") == 0


# --- lost workers ----------------------------------------------------------------------


def test_an_expired_lease_is_retried_with_backoff(store, clock):
    add(store)
    job = take_one(store, seconds=30.0)
    clock.advance(30.0)

    found = look_for_work(store, delay=lambda queue, attempt: 7.0 * attempt)

    assert (found.lost, found.jobs) == (1, ())
    assert found.next_due == clock.boot() + 7
    assert counts(store) == {"delayed": 1}
    lost = records(store.directory)[-1]
    assert isinstance(lost, Nack)
    assert lost.lost
    assert lost.error.message == "lease expired: worker lost"
    with pytest.raises(NotLeasedError):
        ack(store, job)
    clock.advance(7)
    assert take_one(store).row.attempts == 2


def test_a_lease_is_not_taken_back_before_its_time(store, clock):
    add(store)
    job = take_one(store, seconds=30.0)
    clock.advance(29.9)

    assert look_for_work(store).lost == 0
    ack(store, job)


def test_an_expired_lease_without_backoff_is_given_out_in_the_same_look(store, clock):
    add(store)
    take_one(store)
    clock.advance(31)

    found = look_for_work(store)

    assert (found.lost, len(found.jobs)) == (1, 1)
    assert records(store.directory)[-1].attempt == 2


def test_a_job_lost_on_its_last_attempt_is_dead_with_the_reason(store, clock):
    add(store, max_attempts=2)
    for _ in range(2):
        take_one(store)
        clock.advance(31)

    found = look_for_work(store)

    assert (found.lost, found.jobs) == (1, ())
    assert counts(store) == {"dead": 1}
    dead = row(store, records(store.directory)[-1].job)
    failure = history.failure(store, dead)
    assert failure is not None
    assert failure[0].message == "lease expired: worker lost"
    assert failure[1] == "lost"
    assert dead.attempts == 2


def test_steps_of_the_wall_clock_neither_expire_nor_prolong_a_lease(store, clock):
    add(store)
    job = take_one(store, seconds=30.0)

    clock.step_wall(1e6)
    assert look_for_work(store).lost == 0
    clock.step_wall(-2e6)
    clock.advance(31)
    assert look_for_work(store).lost == 1
    with pytest.raises(NotLeasedError):
        ack(store, job)


def test_a_lease_of_another_boot_is_void_at_once(open_store, store, clock):
    """Its deadline may lie far ahead on the new boot clock, and means nothing."""
    add(store)
    job = take_one(store, seconds=1e6)
    store.close()
    clock.restart()

    again = open_store(clock=clock)

    found = look_for_work(again)
    assert (found.lost, len(found.jobs)) == (1, 1)
    with pytest.raises(NotLeasedError):
        ack(again, job)


def test_many_lost_leases_are_taken_back_in_slices(store, clock):
    """One transaction stays short, whatever died."""
    add_many(store, range(450))
    assert len(take(store, 450)) == 450
    clock.advance(31)

    lost = [look_for_work(store, delay=lambda q, a: 5.0).lost for _ in range(4)]

    assert lost == [200, 200, 50, 0]
    assert counts(store) == {"delayed": 450}


def test_lost_leases_of_every_queue_are_taken_back(store, clock):
    add(store, queue="other")
    take_one(store)
    clock.advance(31)

    assert look_for_work(store, queues=["q"]).lost == 1
    assert counts(store, "other") == {"ready": 1}


def test_the_backoff_is_asked_for_the_queue_and_the_attempt(store, clock):
    add(store, queue="mails")
    take_one(store)
    clock.advance(31)
    asked = []

    look_for_work(
        store, delay=lambda queue, attempt: asked.append((queue, attempt)) or 0
    )

    assert asked == [("mails", 1)]


# --- sleeping -----------------------------------------------------------------------------


def test_a_look_that_finds_nothing_says_that_the_worker_will_sleep(store, clock):
    slots = doorbell.slots_of(["q"])

    look_for_work(store, sleep_slots=slots, sleep_seconds=5.0)

    until = store.control.waiting_until(slots[0])
    assert until == pytest.approx((clock.boot() + 5) * 1e6)


def test_a_look_that_finds_a_job_says_nothing(store):
    add(store)
    slots = doorbell.slots_of(["q"])

    look_for_work(store, sleep_slots=slots, sleep_seconds=5.0)

    assert store.control.waiting_until(slots[0]) == 0


def test_the_reason_of_a_damaged_payload_names_its_place(store):
    add(store)
    job = take_one(store)

    assert str(job.position) in claims.damaged(job).message


@given(
    jobs=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(-2, 2), st.integers(0, 3)),
        max_size=15,
    )
)
def test_any_jobs_are_taken_in_the_documented_order(tmp_path_factory, jobs):
    from django_nobroker.engine.store import Store
    from tests.faults.hands import SettableClock

    root = tmp_path_factory.mktemp("order")
    clock = SettableClock()
    store = Store(str(root / "jobs"), index_root=str(root), clock=clock)
    try:
        start = clock.wall()
        for n, (queue, priority, delay) in enumerate(jobs):
            add(store, n, queue=queue, priority=priority, delay=delay, durable=False)
        clock.advance(5)
        expected = sorted(
            range(len(jobs)), key=lambda n: (-jobs[n][1], start + jobs[n][2], n)
        )
        assert order_taken(store) == expected
        assert len(payloads(store).get("leased", [])) == len(jobs)
    finally:
        store.close()


# --- taking several with care ------------------------------------------------------


def test_a_careful_worker_takes_fresh_jobs_together(store):
    add_many(store, range(5))

    assert len(take(store, 4, careful=True)) == 4


def test_a_careful_worker_takes_a_job_alone_that_was_tried_before(store):
    """It may be the one that kills workers: no other job shall pay for it."""
    for n in range(3):
        add(store, n)
    nack(store, take_one(store))

    sizes = []
    while jobs := take(store, 10, careful=True):
        sizes.append(len(jobs))

    assert sizes == [1, 2]


def test_a_careful_worker_takes_a_job_alone_that_has_one_attempt_only(store):
    add(store, 0)
    add(store, 1, max_attempts=1)
    add(store, 2)

    sizes = []
    while jobs := take(store, 10, careful=True):
        sizes.append(len(jobs))

    assert sizes == [1, 1, 1]


def test_the_worker_of_a_deadly_job_costs_the_others_one_attempt(store, clock):
    """Workers die again and again while the same job runs."""
    for n in range(8):
        add(store, n, max_attempts=5)
    deadly = 3
    for _ in range(20):
        jobs = take(store, 8, careful=True, delay=lambda queue, attempt: 0.0)
        for job in jobs:
            if int(history.payload(store, job.row)) == deadly:
                break
            ack(store, job)
        clock.advance(31)

    assert counts(store) == {"done": 7, "dead": 1}


def test_sharers_leave_their_part_to_each_other(store):
    add_many(store, range(10))

    assert [len(take(store, 8, sharers=3)) for _ in range(6)] == [3, 2, 1, 1, 1, 1]


def test_one_that_asks_for_one_gets_one(store):
    add(store)

    assert len(take(store, 1, sharers=5)) == 1
