"""What a worker does with each job, when it waits and when it ends."""

from __future__ import annotations

import threading
import time

import pytest

from django_nobroker.engine import settle
from django_nobroker.engine.settle import Held
from django_nobroker.exceptions import QueueClosedError, StoreFailedError
from django_nobroker.seam import Dead, Done, Error, Retry, State, WorkerStats
from tests.doubles import PATIENCE

ERROR = Error(type="ValueError", message="no", traceback="Traceback ...")


class SpeechlessError(Exception):
    def __str__(self):
        raise SystemExit("not even this")


# --- outcomes ----------------------------------------------------------------


def test_done_finishes_the_job(start, queue):
    queue.enqueue(1)

    stats = start(batch=True).stats()

    assert stats == WorkerStats(leased=1, succeeded=1)
    assert queue.stats().done == 1


def test_an_attempt_tells_what_is_known_of_the_job(start, queue):
    job = queue.enqueue({"a": 1}, priority=3, job_id="order-42", max_attempts=2)
    seen = []

    def execute(attempt):
        seen.append(attempt)
        return Retry(error=ERROR, delay=0) if attempt.number == 1 else Done()

    start(execute, batch=True, worker_id="w1").stats()

    first, second = seen
    assert (first.id, first.queue, first.kind) == ("order-42", "default", None)
    assert (first.payload, first.priority, first.max_attempts) == (b'{"a":1}', 3, 2)
    assert (first.worker, first.enqueued_at) == ("w1", job.enqueued_at)
    assert (first.number, second.number) == (1, 2)


def test_retry_comes_back_after_its_delay_or_the_backoff(start, queue):
    queue.enqueue("own", job_id="own")
    queue.enqueue("backoff", job_id="backoff")
    settled = []

    def execute(attempt):
        return Retry(error=ERROR, delay=70.0 if attempt.id == "own" else None)

    stats = start(execute, batch=True, delay=50.0, on_settled=settled.append).stats()

    assert stats == WorkerStats(leased=2, failed=2)
    assert [(one.attempt.id, one.state, one.delay) for one in settled] == [
        ("own", State.READY, 70.0),
        ("backoff", State.READY, 50.0),
    ]
    assert queue.get("own").last_error == "ValueError: no"


def test_the_last_attempt_that_fails_is_a_dead_letter(start, queue):
    queue.enqueue(1, max_attempts=3)
    settled = []

    stats = start(
        lambda attempt: Retry(error=ERROR), batch=True, on_settled=settled.append
    ).stats()

    assert stats == WorkerStats(leased=3, failed=3, dead=1)
    assert [one.state for one in settled] == [State.READY, State.READY, State.DEAD]


def test_dead_goes_to_the_dead_letters_at_once(start, queue):
    queue.enqueue(1)

    stats = start(lambda attempt: Dead(error=ERROR, reason="no"), batch=True).stats()

    assert stats == WorkerStats(leased=1, failed=1, dead=1)
    assert queue.dlq()[0].last_error == "ValueError: no"


@pytest.mark.parametrize(
    "raised",
    [
        ValueError("no"),
        SystemExit(1),
        KeyboardInterrupt(),
        GeneratorExit(),
        StopIteration(),
        RecursionError("deep"),
        MemoryError(),
        SpeechlessError(),
        ValueError("half \ud800 pair"),
        ValueError("x" * 20_000_000),
        BaseExceptionGroup("many", [SystemExit(), ValueError("no")]),
    ],
    ids=lambda raised: type(raised).__name__,
)
def test_whatever_execute_raises_is_a_failed_attempt_and_the_worker_goes_on(
    start, queue, raised
):
    queue.enqueue("bad", job_id="bad", max_attempts=1)
    queue.enqueue("good", job_id="good")

    def execute(attempt):
        if attempt.id == "bad":
            raise raised
        return Done()

    stats = start(execute, batch=True).stats()

    assert stats == WorkerStats(leased=2, succeeded=1, failed=1, dead=1)
    text = queue.get("bad").last_error
    assert type(raised).__name__ in text
    assert len(text.encode()) < 100_000


@pytest.mark.parametrize("raised", [ValueError("no"), SystemExit(1)], ids=repr)
def test_a_callback_that_raises_changes_nothing(start, queue, raised):
    queue.enqueue_many([1, 2])

    def shout(_):
        raise raised

    stats = start(batch=True, on_start=shout, on_settled=shout).stats()

    assert stats == WorkerStats(leased=2, succeeded=2)


def test_callbacks_run_around_the_attempt_in_its_thread(start, queue):
    queue.enqueue_many(range(4))
    calls = []

    def note(what):
        return lambda _: calls.append((what, threading.get_ident()))

    def execute(attempt):
        note("execute")(attempt)
        return Done()

    start(
        execute,
        batch=True,
        concurrency=2,
        on_start=note("start"),
        on_settled=note("settled"),
    ).stats()

    for thread in {ident for _, ident in calls}:
        names = [name for name, ident in calls if ident == thread]
        assert names == ["start", "execute", "settled"] * (len(names) // 3)


def test_a_job_is_on_disk_as_done_when_it_is_told_to_be_settled(start, queue):
    queue.enqueue(1)
    seen = []

    start(batch=True, on_settled=lambda _: seen.append(queue.stats().done)).stats()

    assert seen == [1]


def test_an_unreadable_payload_is_a_dead_letter_and_the_worker_goes_on(
    start, queue, store
):
    bad = queue.enqueue("this will be damaged")
    queue.enqueue("good", job_id="good")
    assert queue.stats().ready == 2  # the index knows both
    (path,) = (path for path in queue_logs(store))
    data = path.read_bytes()
    with path.open("r+b") as log:
        log.seek(data.index(b"will be damaged"))
        log.write(b"W")
    executed = []

    def execute(attempt):
        executed.append(attempt.id)
        return Done()

    stats = start(execute, batch=True).stats()

    assert stats == WorkerStats(leased=2, succeeded=1, failed=1, dead=1)
    assert executed == ["good"]
    (job,) = queue.dlq()
    assert job.id == bad.id
    assert "damaged" in job.last_error


def queue_logs(store):
    from pathlib import Path

    return Path(store.directory).glob("*.log")


# --- leases that are lost ------------------------------------------------------


def test_a_lease_that_was_lost_is_counted_and_its_outcome_dropped(start, queue, clock):
    queue.enqueue(1)
    settled = []

    def execute(attempt):
        clock.advance(100)
        queue.lease_one().ack()
        return Retry(error=ERROR)

    stats = start(execute, batch=True, on_settled=settled.append).stats()

    assert stats == WorkerStats(leased=1, lost_leases=1)
    assert [one.state for one in settled] == [None]
    assert queue.stats().done == 1


def test_an_attempt_can_extend_its_own_lease(start, queue, clock):
    queue.enqueue(1)

    def execute(attempt):
        attempt.extend(1000)
        clock.advance(900)
        assert queue.lease_one() is None
        return Done()

    assert start(execute, batch=True).stats() == WorkerStats(leased=1, succeeded=1)


# --- how much ------------------------------------------------------------------


@pytest.mark.parametrize("most", [0, 1, 5, 19])
def test_threads_together_never_run_more_than_max_jobs(start, queue, most):
    queue.enqueue_many(range(20))

    stats = start(concurrency=8, max_jobs=most).stats()

    assert stats == WorkerStats(leased=most, succeeded=most)
    assert (queue.stats().done, queue.stats().ready) == (most, 20 - most)


def test_a_failed_attempt_counts_as_one_of_max_jobs(start, queue):
    queue.enqueue(1)

    stats = start(lambda attempt: Retry(error=ERROR), concurrency=3, max_jobs=3).stats()

    assert stats == WorkerStats(leased=3, failed=3)


def test_max_jobs_may_come_one_after_the_other(start, queue):
    """Threads that wait must not use up what is left."""
    settled = threading.Semaphore(0)
    worker = start(concurrency=4, max_jobs=6, on_settled=lambda _: settled.release())

    for number in range(6):
        assert not worker.is_over
        queue.enqueue(number)
        assert settled.acquire(timeout=PATIENCE)

    assert worker.stats() == WorkerStats(leased=6, succeeded=6)


def test_threads_run_jobs_at_the_same_time(start, queue):
    queue.enqueue_many(range(4))
    together = threading.Barrier(4)

    def execute(attempt):
        together.wait(PATIENCE)
        return Done()

    stats = start(execute, concurrency=4, batch=True).stats()

    assert stats == WorkerStats(leased=4, succeeded=4)


def test_a_batch_is_what_is_due_and_leaves_retries_and_delayed_jobs(start, queue):
    queue.enqueue("delayed", delay=60)
    queue.enqueue_many(["a", "b"])

    stats = start(
        lambda attempt: Retry(error=ERROR), batch=True, concurrency=3, delay=60.0
    ).stats()

    assert stats == WorkerStats(leased=2, failed=2)
    assert queue.stats().delayed == 3


def test_a_batch_includes_what_its_own_jobs_enqueue(start, queue):
    queue.enqueue(3, job_id="3")

    def execute(attempt):
        number = int(attempt.payload)
        if number:
            queue.enqueue(number - 1)
        return Done()

    stats = start(execute, batch=True, concurrency=3).stats()

    assert stats == WorkerStats(leased=4, succeeded=4)


def test_a_worker_takes_only_the_queues_it_is_told(start, store):
    from django_nobroker import Queue

    queues = [Queue(store.directory, name) for name in ("a", "b", "c")]
    for queue in queues:
        queue.enqueue(queue.name)
    seen = []

    def execute(attempt):
        seen.append(attempt.queue)
        return Done()

    start(execute, batch=True, queues=("a", "none")).stats()
    start(execute, batch=True, exclude=("b",)).stats()
    start(execute, batch=True).stats()

    assert seen == ["a", "c", "b"]
    for queue in queues:
        queue.close()


# --- when it is idle -------------------------------------------------------------


def test_an_idle_worker_is_woken_by_an_enqueue(start, queue):
    settled = threading.Semaphore(0)
    worker = start(concurrency=3, on_settled=lambda _: settled.release())

    for number in range(20):
        queue.enqueue(number)
        assert settled.acquire(timeout=PATIENCE / 2)

    worker.stop()
    assert worker.stats().succeeded == 20


def test_an_idle_worker_wakes_when_a_delayed_job_or_a_retry_is_due(start, queue):
    queue.enqueue(1, delay=0.05)
    settled = threading.Event()

    def execute(attempt):
        return Retry(error=ERROR, delay=0.05) if attempt.number < 3 else Done()

    worker = start(
        execute,
        on_settled=lambda one: settled.set() if one.state is State.DONE else None,
    )

    assert settled.wait(PATIENCE / 2)
    worker.stop()
    assert worker.stats() == WorkerStats(leased=3, succeeded=1, failed=2)


def test_an_idle_worker_takes_a_job_whose_lease_ran_out(start, queue):
    queue.enqueue(1)
    queue.lease_one(visibility_timeout=0.05)
    settled = threading.Event()

    worker = start(on_settled=lambda _: settled.set())

    assert settled.wait(PATIENCE / 2)
    worker.stop()
    assert worker.stats().succeeded == 1


def test_an_idle_worker_ends_after_its_idle_timeout(start):
    assert start(idle_timeout=0.05, concurrency=3).stats() == WorkerStats()


def test_a_job_delayed_at_its_enqueue_is_no_reason_to_stay(start, queue):
    queue.enqueue(1, delay=60)

    assert start(idle_timeout=0.05).stats() == WorkerStats()


def test_a_job_that_waits_for_its_retry_is_a_reason_to_stay(start, queue):
    queue.enqueue(1)

    stats = start(
        lambda attempt: (
            Retry(error=ERROR, delay=0.5) if attempt.number == 1 else Done()
        ),
        idle_timeout=0.1,
        concurrency=2,
    ).stats()

    assert stats == WorkerStats(leased=2, succeeded=1, failed=1)


def test_a_running_job_is_a_reason_to_stay(start, queue, disk):
    """Its thread may be busy for long; the others wait for what comes meanwhile."""
    queue.enqueue("long", job_id="long")
    second = threading.Event()

    def execute(attempt):
        if attempt.id == "long":
            assert second.wait(PATIENCE)
        else:
            second.set()
        return Done()

    worker = start(execute, idle_timeout=0.1, concurrency=2, lease=0.3)
    disk.wait_for(lambda: disk.written("extend") >= 4)  # longer than the idle timeout
    queue.enqueue("second")

    assert worker.stats() == WorkerStats(leased=2, succeeded=2)


# --- stopping -----------------------------------------------------------------------


def test_a_stopped_worker_finishes_what_it_runs_and_takes_no_more(start, queue):
    queue.enqueue_many(range(5))
    begun, go_on = threading.Barrier(3), threading.Event()

    def execute(attempt):
        begun.wait(PATIENCE)
        assert go_on.wait(PATIENCE)
        return Done()

    worker = start(execute, concurrency=2)
    begun.wait(PATIENCE)
    worker.stop()
    go_on.set()

    assert worker.stats() == WorkerStats(leased=2, succeeded=2)
    assert queue.stats().ready == 3


def test_an_idle_worker_stops(start):
    worker = start(concurrency=3)
    worker.stop()

    assert worker.stats() == WorkerStats()


def test_after_the_grace_running_jobs_are_given_back_without_burning_the_attempt(
    start, queue
):
    queue.enqueue("a", job_id="a")
    queue.enqueue("b", job_id="b")
    begun, go_on, left = threading.Barrier(3), threading.Event(), []

    def execute(attempt):
        begun.wait(PATIENCE)
        assert go_on.wait(PATIENCE)
        left.append(threading.current_thread())
        return Done()

    settled = []
    worker = start(execute, concurrency=2, grace=0.05, on_settled=settled.append)
    begun.wait(PATIENCE)
    worker.stop()
    stats = worker.stats()

    assert stats == WorkerStats(leased=2)
    assert queue.stats().ready == 2
    assert [job.attempts for job in queue.list_jobs()] == [0, 0]
    again = queue.lease(2)
    assert [job.attempts for job in again] == [1, 1]
    go_on.set()  # what the handlers say now is too late
    for thread in wait_for_two(left):
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert settled == []
    assert queue.stats().leased == 2
    for job in again:
        job.ack()


def wait_for_two(threads):
    deadline = threading.Event()
    while len(threads) < 2:
        deadline.wait(0.001)
    return threads


# --- several at once -----------------------------------------------------------


@pytest.mark.usefixtures("short_jobs")
def test_short_jobs_share_transactions_and_syncs(start, queue, disk):
    queue.enqueue_many(range(200))
    disk.calls.clear()

    stats = start(max_jobs=200).stats()

    assert stats == WorkerStats(leased=200, succeeded=200)
    assert disk.written("lease") == disk.written("ack") == 200
    assert disk.calls.count("sync") < 50


def test_jobs_are_executed_and_settled_in_their_order(start, queue):
    queue.enqueue_many(range(200))
    executed, settled = [], []

    def execute(attempt):
        executed.append(int(attempt.payload))
        return Done()

    start(
        execute,
        max_jobs=200,
        on_settled=lambda one: settled.append(int(one.attempt.payload)),
    ).stats()

    assert executed == settled == list(range(200))


def test_a_worker_that_takes_one_at_a_time_settles_it_before_the_next(start, queue):
    queue.enqueue_many(range(20))
    seen = []

    def execute(attempt):
        seen.append((queue.stats().done, queue.stats().leased))
        return Done()

    start(execute, max_jobs=20, at_once=1).stats()

    assert seen == [(number, 1) for number in range(20)]


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.001)


class LongJob:
    """Jobs that take no time, until one of them that waits for the test."""

    def __init__(self, number):
        self.number = number
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, attempt):
        if int(attempt.payload) == self.number:
            self.begun.set()
            assert self.go_on.wait(PATIENCE)
        return Done()


@pytest.mark.usefixtures("short_jobs")
def test_nothing_waits_behind_a_long_job(start, queue, disk):
    queue.enqueue_many(range(100))
    settled = []
    long = LongJob(40)

    first = start(long, max_jobs=100, on_settled=settled.append)
    assert long.begun.wait(PATIENCE)
    # The 24 behind it were leased with it: they go back, and the others are done.
    disk.wait_for(lambda: disk.written("ack") == 40)
    disk.wait_for(lambda: disk.written("release") > 0)
    wait_until(lambda: len(settled) == 40 and queue.stats().leased == 1)
    assert start(max_jobs=59).stats() == WorkerStats(leased=59, succeeded=59)
    queue.enqueue_many(range(1000, 1059))
    long.go_on.set()

    assert first.stats() == WorkerStats(leased=100, succeeded=100)
    assert queue.stats().done == 159


@pytest.mark.usefixtures("short_jobs")
def test_what_was_given_back_lost_no_attempt(start, queue, disk):
    queue.enqueue_many(range(100))
    long = LongJob(40)

    worker = start(long, max_jobs=41)
    assert long.begun.wait(PATIENCE)
    long.go_on.set()
    worker.stats()

    assert {job.attempts for job in queue.list_jobs(state="ready")} == {0}
    assert queue.stats().ready == 59


@pytest.mark.usefixtures("short_jobs", "no_relief")
def test_a_stop_gives_back_what_did_not_begin(start, queue):
    queue.enqueue_many(range(100))
    long = LongJob(40)

    worker = start(long)
    assert long.begun.wait(PATIENCE)
    worker.stop()
    long.go_on.set()

    assert worker.stats() == WorkerStats(leased=41, succeeded=41)
    assert (queue.stats().ready, queue.stats().leased) == (59, 0)


@pytest.mark.usefixtures("short_jobs", "no_relief")
def test_after_the_grace_what_has_ended_is_done(start, queue):
    queue.enqueue_many(range(100))
    long = LongJob(40)

    worker = start(long, grace=0)
    assert long.begun.wait(PATIENCE)
    worker.stop()

    assert worker.stats() == WorkerStats(leased=41, succeeded=40)
    assert (queue.stats().ready, queue.stats().done) == (60, 40)
    long.go_on.set()


@pytest.mark.usefixtures("short_jobs", "no_relief")
def test_of_jobs_that_are_settled_together_only_the_lost_ones_are_lost(
    start, queue, store
):
    queue.enqueue_many(range(40))
    attempts, settled = [], []

    def execute(attempt):
        attempts.append(attempt)
        if len(attempts) == 20:
            first = attempts[16].held  # of the batch of sixteen that began there
            settle.ack(
                store,
                Held(first.position, first.token),
                result=None,
                durable=True,
                timeout=PATIENCE,
            )
            late = attempts[17].held
            settle.release(
                store,
                Held(late.position, late.token),
                durable=True,
                timeout=PATIENCE,
            )
        return Done()

    stats = start(execute, batch=True, on_settled=settled.append).stats()

    assert stats == WorkerStats(leased=41, succeeded=40, lost_leases=1)
    assert [one.attempt for one in settled if one.state is None] == [attempts[17]]
    assert queue.stats().done == 40


@pytest.mark.usefixtures("short_jobs", "no_relief")
def test_after_a_stand_still_nothing_begins_whose_lease_ran_out(start, queue, clock):
    queue.enqueue_many(range(40))
    executed, elsewhere = [], []

    def execute(attempt):
        executed.append(int(attempt.payload))
        if len(executed) == 20:
            clock.advance(100)
            # Another worker finds the leases expired, and does one of the others.
            elsewhere.append(queue.lease_one())
            elsewhere[0].ack()
        return Done()

    stats = start(execute, batch=True).stats()

    assert executed[:20] == list(range(20))
    assert stats == WorkerStats(leased=44, succeeded=39, lost_leases=5)
    done = sorted([*executed, elsewhere[0].payload])
    assert done == sorted([*range(40), 15, 16, 17, 18, 19])


@pytest.mark.usefixtures("short_jobs")
def test_a_few_jobs_are_spread_over_the_threads(start, queue):
    """Also when the threads have seen so many short jobs that they take 64 at once."""
    queue.enqueue_many(range(1000))
    together = threading.Barrier(4)

    def execute(attempt):
        if int(attempt.payload) >= 1000:
            together.wait(PATIENCE)
        return Done()

    worker = start(execute, concurrency=4, max_jobs=1004)
    wait_until(lambda: queue.stats().done == 1000)
    queue.enqueue_many(range(1000, 1004))

    assert worker.stats() == WorkerStats(leased=1004, succeeded=1004)


# --- trouble of the disk -----------------------------------------------------------------


@pytest.mark.parametrize(
    "outcome",
    [Done(), Retry(error=ERROR), Dead(error=ERROR, reason="no")],
    ids=["done", "retry", "dead"],
)
def test_a_full_disk_while_settling_neither_ends_a_thread_nor_strands_the_job(
    start, queue, disk, outcome
):
    queue.enqueue_many([1, 2], max_attempts=1)
    executed = []

    def execute(attempt):
        executed.append(attempt.id)
        if len(executed) == 1:
            disk.full_for = 2
        return outcome

    stats = start(execute, max_jobs=2).stats()

    assert disk.refused == 2
    assert len(executed) == 2
    assert stats.leased == stats.succeeded + stats.dead == 2
    assert queue.stats().ready == queue.stats().leased == 0


def test_a_full_disk_while_leasing_is_waited_out(start, queue, disk):
    queue.enqueue(1)
    disk.full_for = 2

    stats = start(max_jobs=1).stats()

    assert disk.refused == 2
    assert stats == WorkerStats(leased=1, succeeded=1)


def test_a_worker_on_a_full_disk_can_be_stopped(start, queue, disk):
    queue.enqueue(1)
    disk.full = True
    worker = start(concurrency=2)
    disk.wait_for(lambda: disk.refused >= 1)

    worker.stop()

    assert worker.stats() == WorkerStats()


def test_after_a_failed_sync_the_worker_ends_with_that_error(start, queue, disk):
    queue.enqueue(1)

    def execute(attempt):
        disk.broken = True
        return Done()

    with pytest.raises(StoreFailedError):
        start(execute, concurrency=3).stats()


def test_a_closed_queue_ends_the_worker(start, store):
    """The store is closed under a worker that sleeps; it must not hang."""
    worker = start(poll_interval=0.05)

    store.close()

    with pytest.raises(QueueClosedError):
        worker.stats()


def test_a_worker_without_grace_leaves_its_idle_threads_in_peace(start, queue, caplog):
    """The pipes that a thread sleeps on are not closed under it."""
    for number in range(20):
        queue.enqueue(number)
        begun, go_on = threading.Event(), threading.Event()

        def execute(attempt, begun=begun, go_on=go_on):
            begun.set()
            assert go_on.wait(PATIENCE)
            return Done()

        worker = start(execute, concurrency=4, grace=0.0)
        assert begun.wait(PATIENCE)
        worker.stop()
        assert worker.stats() == WorkerStats(leased=1)
        go_on.set()
        queue.lease_one().ack()

    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_nothing_is_run_that_was_leased_when_the_stop_came(start, queue, disk):
    """A job that a thread is given in the same instant goes back untouched."""
    queue.enqueue(1)
    executed = []
    worker = None
    asked = threading.Event()
    write = disk.write

    def write_and_stop(fd, data):
        if b'"op":"lease"' in data:
            assert asked.wait(PATIENCE)
            worker.stop()
        return write(fd, data)

    disk.write = write_and_stop
    worker = start(executed.append, grace=PATIENCE)
    asked.set()

    assert worker.stats().succeeded == 0
    assert executed == []
    (job,) = queue.list_jobs()
    assert (job.state, job.attempts) == (State.READY, 0)


# --- the roster ---------------------------------------------------------------


def test_a_worker_is_seen_while_it_works_and_not_afterwards(start, queue):
    queue.enqueue(1)
    seen = []

    def execute(attempt):
        seen.extend(queue.workers())
        return Done()

    start(execute, batch=True, worker_id="w1", concurrency=2).stats()

    (entry,) = seen
    assert (entry.id, entry.queues, entry.concurrency) == ("w1", (), 2)
    assert queue.workers() == ()


def test_a_store_without_room_for_the_roster_keeps_no_worker_from_working(
    start, queue, disk, monkeypatch, caplog
):
    queue.enqueue(1)
    make = disk.mkdir

    def mkdir(path, mode):
        if path.endswith("/workers"):
            raise OSError(28, "No space left on device")
        return make(path, mode)

    monkeypatch.setattr(disk, "mkdir", mkdir)

    stats = start(batch=True).stats()

    assert stats.succeeded == 1
    assert "Nobody will see that this worker is alive" in caplog.text


def test_a_worker_that_ends_by_an_error_leaves_the_roster(start, queue, disk):
    queue.enqueue(1)
    disk.broken = True

    with pytest.raises(StoreFailedError):
        start(batch=True).stats()

    assert queue.workers() == ()
