"""Every end of an attempt, and who may decide it."""

from __future__ import annotations

import msgspec
import pytest

from django_nobroker.engine import deadletters, history, settle
from django_nobroker.engine.errors import JobNotFoundError, NotLeasedError
from django_nobroker.engine.lease import Token
from django_nobroker.engine.record import Ack, Dead, Extend, Failure, Nack, Requeue
from django_nobroker.engine.settle import Held

from .driving import (
    TIMEOUT,
    ack,
    add,
    add_many,
    counts,
    held,
    kill,
    look_for_work,
    nack,
    records,
    release,
    row,
    take,
    take_one,
)


def bury(store, job):
    return settle.bury(
        store,
        held(job),
        error=Failure(message="no"),
        reason=settle.REJECTED,
        durable=True,
        timeout=TIMEOUT,
    )


def extend(store, job, seconds=60.0):
    return settle.extend(store, held(job), seconds, timeout=TIMEOUT)


ENDS = {"ack": ack, "nack": nack, "bury": bury, "release": release, "extend": extend}


# --- fencing -------------------------------------------------------------------


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_stale_token_is_refused_and_changes_nothing(store, clock, end):
    add(store)
    stale = take_one(store)
    clock.advance(31)
    current = take_one(store)
    before = records(store.directory)

    with pytest.raises(NotLeasedError):
        end(store, stale)

    assert len(records(store.directory)) == len(before)
    ack(store, current)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_forged_token_is_refused(store, end):
    add(store)
    job = take_one(store)
    for forged in (
        Token(job.token.epoch + 1, job.token.position),
        Token(job.token.epoch, job.token.position + 1),
        Token(0, 0),
    ):
        with pytest.raises(NotLeasedError):
            end(store, settle_with(job, forged))
    assert counts(store) == {"leased": 1}


def settle_with(job, token):
    from dataclasses import replace

    return replace(job, token=token)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_job_that_was_never_leased_cannot_be_settled(store, end):
    add(store)
    job = take_one(store)
    release(store, job)

    with pytest.raises(NotLeasedError):
        end(store, settle_with(job, Token(job.token.epoch, 0)))


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_job_that_is_not_there_is_told(store, end):
    from dataclasses import replace

    add(store)
    job = replace(take_one(store), position=999_999)

    with pytest.raises(JobNotFoundError):
        end(store, job)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("first", [ack, nack, bury, release])
def test_a_token_settles_once(store, first, end):
    add(store)
    job = take_one(store)
    first(store, job)
    if (first, end) == (ack, ack):
        return

    with pytest.raises(NotLeasedError):
        end(store, job)


def test_a_token_of_before_a_crash_holds_in_the_same_boot(open_store, store, clock):
    add(store)
    job = take_one(store)
    store.close()

    again = open_store(clock=clock)

    ack(again, job)
    assert counts(again) == {"done": 1}


# --- ack ------------------------------------------------------------------------


def test_a_finished_job_keeps_its_result(store):
    add(store)
    job = take_one(store)

    ack(store, job, {"answer": 42})

    done = row(store, job.position)
    assert history.result(store, done) == b'{"answer":42}'
    assert counts(store) == {"done": 1}


def test_a_job_without_a_result_has_none(store):
    add(store)
    job = take_one(store)
    ack(store, job)

    assert history.result(store, row(store, job.position)) is None


def test_repeating_an_ack_with_its_token_changes_nothing(store):
    """The answer of the first one may have been lost on its way."""
    add(store)
    job = take_one(store)
    ack(store, job, "first")
    before = len(records(store.directory))

    ack(store, job, "second")

    assert len(records(store.directory)) == before
    assert history.result(store, row(store, job.position)) == b'"first"'


def test_an_ack_after_the_deadline_holds_while_nobody_else_has_the_job(store, clock):
    add(store)
    job = take_one(store, seconds=1.0)
    clock.advance(100)

    ack(store, job)

    assert counts(store) == {"done": 1}


def test_an_ack_is_durable_when_it_returns(store, files):
    add(store)
    job = take_one(store)
    files.forget()

    ack(store, job)

    assert files.names().index("write") < files.names().index("fdatasync")
    assert isinstance(records(store.directory)[-1], Ack)


# --- nack -----------------------------------------------------------------------------


def test_a_failed_attempt_is_retried_after_the_backoff(store, clock):
    add(store)

    settled = nack(store, take_one(store), delay=None, error="boom")

    assert settled.delay == 10.0
    assert counts(store) == {"delayed": 1}
    clock.advance(10)
    job = take_one(store)
    assert row(store, job.position).attempts == 2
    assert nack(store, job, delay=None).delay == 20.0


def test_a_failed_attempt_keeps_what_it_said(store):
    add(store)
    job = take_one(store)
    nack(store, job, error="boom")

    found = history.failure(store, row(store, job.position))

    assert found is not None
    assert (found[0].type, found[0].message) == ("Error", "boom")


def test_a_negative_delay_is_none(store):
    add(store)

    assert nack(store, take_one(store), delay=-5.0).delay == 0.0
    assert counts(store) == {"ready": 1}


def test_the_last_attempt_that_fails_leads_to_the_dead_letters(store):
    add(store, max_attempts=2)
    nack(store, take_one(store))

    settled = nack(store, take_one(store), error="again")

    assert settled.delay is None
    assert counts(store) == {"dead": 1}
    last = records(store.directory)[-1]
    assert isinstance(last, Dead)
    assert (last.reason, last.error.message) == (settle.ATTEMPTS, "again")


def test_a_rejected_job_is_dead_whatever_attempts_it_has_left(store):
    add(store, max_attempts=99)

    bury(store, take_one(store))

    assert counts(store) == {"dead": 1}
    assert records(store.directory)[-1].reason == settle.REJECTED


# --- release, extend, heartbeat ------------------------------------------------------------


def test_a_job_given_back_is_due_at_once_and_the_attempt_is_not_counted(store):
    add(store, max_attempts=1)
    for _ in range(3):
        release(store, take_one(store))

    job = take_one(store)

    assert row(store, job.position).attempts == 1
    ack(store, job)


def test_a_job_given_back_keeps_its_place_in_the_order(store):
    first, second = add_many(store, [1, 2])

    release(store, take_one(store))

    assert [take_one(store).position for _ in range(2)] == [first.at, second.at]


def test_an_extension_counts_from_now_and_never_shortens(store, clock):
    add(store)
    job = take_one(store, seconds=30.0)
    clock.advance(10)

    assert extend(store, job, 5.0).until  # would end at 15
    assert row(store, job.position).until == job.until
    extend(store, job, 100.0)
    assert row(store, job.position).until == clock.boot() + 100

    clock.advance(99)
    assert look_for_work(store).lost == 0
    clock.advance(1)
    assert look_for_work(store).lost == 1


def test_a_lease_that_ran_out_can_be_extended_while_nobody_else_has_the_job(
    store, clock
):
    add(store)
    job = take_one(store, seconds=1.0)
    clock.advance(50)

    extend(store, job, 10.0)

    assert look_for_work(store).lost == 0


@pytest.mark.parametrize("way", ["extend", "heartbeat"])
def test_the_deadline_of_another_boot_does_not_count(open_store, store, clock, way):
    """It may lie far ahead on the new boot clock, and means nothing there."""
    add(store)
    job = take_one(store, seconds=1000.0)
    store.close()
    clock.restart()
    again = open_store(clock=clock)

    if way == "extend":
        extend(again, job, 5.0)
    else:
        heartbeat(again, [job], 5.0)

    assert row(again, job.position).until == clock.boot() + 5
    assert look_for_work(again).lost == 0
    clock.advance(5)
    assert look_for_work(again).lost == 1


def heartbeat(store, jobs, seconds=30.0):
    return settle.heartbeat(
        store, [held(job) for job in jobs], seconds, timeout=TIMEOUT
    )


def test_a_heartbeat_reaches_one_timeout_from_now_and_no_further(store, clock):
    add(store)
    job = take_one(store, seconds=30.0)
    for _ in range(10):
        clock.advance(1)
        assert heartbeat(store, [job]) == []

    assert row(store, job.position).until == clock.boot() + 30


def test_a_heartbeat_leaves_an_explicit_extension_alone(store, clock):
    add(store)
    job = take_one(store, seconds=30.0)
    extend(store, job, 500.0)
    until = row(store, job.position).until

    heartbeat(store, [job])

    assert row(store, job.position).until == until


def test_a_heartbeat_tells_whose_lease_is_lost(store, clock):
    add_many(store, range(3))
    lost, kept, gone = take(store, 3)
    ack(store, lost)
    missing = Held(999_999, gone.token)

    answer = settle.heartbeat(
        store, [held(lost), held(kept), missing], 30.0, timeout=TIMEOUT
    )

    assert answer == [held(lost), missing]


def test_a_heartbeat_of_nothing_new_writes_nothing(store):
    add(store)
    job = take_one(store, seconds=30.0)
    before = len(records(store.directory))

    heartbeat(store, [job], 30.0)
    heartbeat(store, [])

    assert len(records(store.directory)) == before


def test_heartbeats_of_many_jobs_are_one_transaction(store, clock, files):
    add_many(store, range(5))
    jobs = take(store, 5)
    clock.advance(5)
    files.forget()

    heartbeat(store, jobs)

    assert files.count("write") == 1
    assert files.count("fdatasync") == 0
    last = records(store.directory)[-5:]
    assert [type(one) for one in last] == [Extend] * 5


# --- dead letters --------------------------------------------------------------------------


def requeue(store, positions, by="ada"):
    return deadletters.requeue(store, positions, by=by, durable=True, timeout=TIMEOUT)


def discard(store, positions, by="ada"):
    return deadletters.discard(store, positions, by=by, durable=True, timeout=TIMEOUT)


def test_a_requeued_job_is_ready_with_its_attempts_before_it_and_its_history(store):
    job = add(store, max_attempts=2)
    nack(store, take_one(store), error="first")
    nack(store, take_one(store), error="second")

    assert requeue(store, [job.at]) == [job.at]

    again = row(store, job.at)
    assert (again.attempts, again.error) == (0, 0)
    assert counts(store) == {"ready": 1}
    told = [type(one).__name__ for one in history.backwards(store, again)]
    assert told == ["Requeue", "Dead", "Lease", "Nack", "Lease", "Enqueue"]
    last = records(store.directory)[-1]
    assert isinstance(last, Requeue)
    assert last.by == "ada"
    nack(store, take_one(store))
    assert counts(store) == {"ready": 1}


def test_only_dead_jobs_are_requeued(store):
    waiting = add(store)
    dead = kill_new(store)
    position = take_one(store).position

    moved = requeue(store, [waiting.at, dead, 999_999, dead])

    assert position == waiting.at
    assert moved == [dead]


def kill_new(store):
    add(store, priority=100)
    return kill(store)


def test_dead_and_ready_jobs_can_be_thrown_away(store):
    waiting, leased, dead = add(store, 0), add(store, 1, priority=1), kill_new(store)
    job = take_one(store)

    moved = discard(store, [waiting.at, leased.at, dead, 999_999])

    assert moved == [waiting.at, dead]
    assert counts(store) == {"leased": 1, "discarded": 2}
    assert discard(store, [waiting.at]) == []
    assert job.position == leased.at


def test_many_jobs_are_moved_in_slices(store, files):
    """No slice holds the lock for long."""
    add_many(store, range(1200))
    positions = [job.position for job in take(store, 1200)]
    for start in range(0, 1200, 400):
        store.run(
            lambda tx, part=positions[start : start + 400]: tx.add(
                [
                    Dead(job=p, prev=p, t=1.0, error=Failure(), reason="attempts")
                    for p in part
                ]
            ),
            timeout=TIMEOUT,
            durable=True,
        )
    files.forget()

    moved = requeue(store, deadletters.dead_positions(store, "q"))

    assert moved == positions
    assert files.count("write") == 3
    assert counts(store) == {"ready": 1200}


def test_dead_jobs_are_found_by_queue_or_anywhere(store):
    add(store, queue="a")
    add(store, queue="b")
    first, second = kill(store, queues=["a"]), kill(store, queues=["b"])

    assert deadletters.dead_positions(store, "a") == [first]
    assert deadletters.dead_positions(store, None) == [first, second]
    assert deadletters.dead_positions(store, "unheard-of") == []


def test_a_retry_that_is_due_at_once_is_written_as_such(store):
    add(store)
    nack(store, take_one(store), delay=0.0)

    last = records(store.directory)[-1]

    assert isinstance(last, Nack)
    assert (last.delay, last.lost) == (0.0, False)
    assert msgspec.to_builtins(last.error)["message"] == "no"


# --- several at once -------------------------------------------------------------


def test_several_jobs_are_finished_in_one_transaction(store):
    add_many(store, range(3))
    jobs = take(store, 3)
    before = records(store.directory)

    lost = settle.ack_all(
        store,
        [(held(job), b"%d" % n) for n, job in enumerate(jobs)],
        durable=True,
        timeout=TIMEOUT,
    )

    assert lost == []
    written = records(store.directory)[len(before) :]
    assert [type(one) for one in written] == [Ack] * 3
    assert [history.result(store, row(store, job.position)) for job in jobs] == [
        b"0",
        b"1",
        b"2",
    ]


@pytest.mark.parametrize(
    "end",
    [
        lambda store, jobs: settle.ack_all(
            store, [(job, None) for job in jobs], durable=True, timeout=TIMEOUT
        ),
        lambda store, jobs: settle.release_all(
            store, jobs, durable=True, timeout=TIMEOUT
        ),
    ],
    ids=["ack_all", "release_all"],
)
def test_of_several_jobs_those_whose_lease_is_lost_are_told(store, end):
    add_many(store, range(4))
    jobs = take(store, 4)
    nack(store, jobs[1], delay=10.0)
    unknown = Held(10**9, jobs[0].token)

    lost = end(store, [*map(held, jobs), unknown])

    assert lost == [held(jobs[1]), unknown]
    assert "leased" not in counts(store)


def test_finishing_several_again_changes_nothing(store):
    add_many(store, range(2))
    jobs = [(held(job), None) for job in take(store, 2)]
    settle.ack_all(store, jobs, durable=True, timeout=TIMEOUT)
    before = records(store.directory)

    assert settle.ack_all(store, jobs, durable=True, timeout=TIMEOUT) == []
    assert records(store.directory) == before


def test_several_jobs_given_back_lost_no_attempt(store):
    add_many(store, range(3))
    jobs = take(store, 3)

    settle.release_all(store, list(map(held, jobs)), durable=True, timeout=TIMEOUT)

    assert [row(store, job.position).attempts for job in jobs] == [0, 0, 0]
    assert counts(store)["ready"] == 3
