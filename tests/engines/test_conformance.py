"""What every engine does behind the seam, whatever it is made of.

Each test runs on every engine. What only one of them can do (surviving a crash, say)
is not here.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import pytest

from django_nobroker import seam
from django_nobroker.exceptions import JobNotFoundError
from django_nobroker.options import Options, read_options
from django_nobroker.seam import Dead, Done, Error, NewJob, Retry, State, WorkerOptions
from tests.memory_engine import MemoryEngine

OOPS = Error(type="builtins.ValueError", message="oops", traceback="Traceback ...")
PATIENCE = 20.0  # seconds until a test that waits for a thread gives up


def embedded_engine(options: Options):
    embedded = pytest.importorskip("django_nobroker.embedded")
    return embedded.EmbeddedEngine.from_options(options, alias="default")


@pytest.fixture(params=[MemoryEngine, embedded_engine], ids=["memory", "embedded"])
def make_engine(request, tmp_path):
    """Return a function that makes an engine on an empty store, with options."""
    made = []

    def make(**given):
        given = {"BACKOFF": {"base": 0}, "FILE_MODE": 0o600, **given}
        engine = request.param(read_options(given, tmp_path / "jobs"))
        made.append(engine)
        return engine

    yield make
    for engine in made:
        engine.close()


@pytest.fixture
def engine(make_engine):
    return make_engine()


@dataclass
class Worker:
    """Runs jobs by a function of the test, and remembers what it was told."""

    engine: seam.Engine
    act: seam.Execute = lambda attempt: Done()
    stop: threading.Event = field(default_factory=threading.Event)
    started: list[seam.Attempt] = field(default_factory=list)
    settled: list[seam.Settled] = field(default_factory=list)

    def run(self, **options):
        given = {"batch": True, "worker_id": "w1", "poll_interval": 0.05, **options}
        return self.engine.run_worker(
            self.act,
            WorkerOptions(**given),
            stop=self.stop,
            on_start=self.started.append,
            on_settled=self.settled.append,
        )

    @property
    def ran(self):
        return [attempt.id for attempt in self.started]


def new(job_id=None, queue="default", **values):
    return NewJob(queue=queue, payload=b'{"n":1}', job_id=job_id, **values)


def states(engine):
    return {job.id: job.state for job in engine.jobs().jobs}


# --- enqueue ------------------------------------------------------------------


def test_enqueue_answers_one_by_one_in_order(engine):
    before = time.time()
    answers = engine.enqueue_many([new("a"), new(), new("c")])

    assert [answers[0].id, answers[2].id] == ["a", "c"]
    assert len({answer.id for answer in answers}) == 3
    assert all(answer.created for answer in answers)
    assert all(before - 1 <= a.enqueued_at <= time.time() + 1 for a in answers)


def test_enqueue_of_nothing_is_nothing(engine):
    assert engine.enqueue_many([]) == []
    assert engine.counts() == []


def test_a_known_id_is_not_enqueued_again_whatever_its_queue(engine):
    first = engine.enqueue_many([new("a")])[0]
    again = engine.enqueue_many([new("a", queue="other", priority=5), new("b")])

    assert not again[0].created
    assert ("a", first.enqueued_at) == (again[0].id, again[0].enqueued_at)
    assert again[1].created
    assert (
        engine.job("a").job.queue,
        engine.job("a").job.priority,
    ) == ("default", 0)


def test_the_id_of_a_finished_job_still_blocks_another(engine):
    engine.enqueue_many([new("a")])
    Worker(engine).run()

    assert not engine.enqueue_many([new("a")])[0].created


def test_everything_given_at_enqueue_can_be_read(engine):
    later = time.time() + 3600
    job = new("a", "emails", kind="app.f", priority=-7, max_attempts=9, run_at=later)
    (answer,) = engine.enqueue_many([job])
    detail = engine.job("a")

    assert detail.payload == b'{"n":1}'
    assert detail.result is None
    assert detail.history == ()
    view = detail.job
    assert (view.queue, view.kind, view.state) == ("emails", "app.f", State.READY)
    assert (view.priority, view.attempts, view.max_attempts) == (-7, 0, 9)
    assert answer.enqueued_at == view.enqueued_at
    assert later == pytest.approx(view.available_at, abs=0.01)
    assert view.started_at is view.last_attempted_at is view.finished_at is None
    assert view.error is None


def test_an_unknown_id_is_an_error(engine):
    with pytest.raises(JobNotFoundError):
        engine.job("nothing")


# --- the order of jobs -----------------------------------------------------------


def test_higher_priority_first_then_the_order_of_enqueue(engine):
    engine.enqueue_many(
        [new("a"), new("b", priority=-5), new("c", priority=5), new("d"), new("e")]
    )
    worker = Worker(engine)
    worker.run()

    assert worker.ran == ["c", "a", "d", "e", "b"]


def test_a_delayed_job_waits_and_one_due_in_the_past_does_not(engine):
    now = time.time()
    engine.enqueue_many(
        [new("later", run_at=now + 3600), new("past", run_at=now - 3600)]
    )
    worker = Worker(engine)
    worker.run()

    assert worker.ran == ["past"]
    (counts,) = engine.counts()
    assert (counts.ready, counts.delayed, counts.done) == (0, 1, 1)


def test_a_delayed_job_runs_when_it_is_due(engine):
    engine.enqueue_many([new("soon", run_at=time.time() + 0.2)])
    worker = Worker(engine)
    worker.run(batch=False, max_jobs=1)

    assert worker.ran == ["soon"]


def test_only_the_chosen_queues_are_worked_on(engine):
    engine.enqueue_many([new("a", "one"), new("b", "two"), new("c", "three")])
    first = Worker(engine)
    first.run(queues=("one", "two"), exclude=("two",))
    second = Worker(engine)
    second.run(exclude=("three",))

    assert (first.ran, second.ran) == (["a"], ["b"])
    assert states(engine)["c"] == State.READY


# --- one attempt -------------------------------------------------------------------


def test_an_attempt_carries_what_it_is_about(engine):
    engine.enqueue_many([new("a", "emails", kind="app.f", priority=3, max_attempts=2)])
    worker = Worker(engine)
    worker.run()
    (attempt,) = worker.started

    assert (attempt.id, attempt.queue, attempt.kind) == ("a", "emails", "app.f")
    assert (attempt.payload, attempt.priority) == (b'{"n":1}', 3)
    assert (attempt.number, attempt.max_attempts, attempt.worker) == (1, 2, "w1")
    assert engine.job("a").job.enqueued_at == attempt.enqueued_at


def test_a_done_job_keeps_its_result_and_its_attempt(engine):
    engine.enqueue_many([new("a")])
    worker = Worker(engine, lambda attempt: Done(result=b"[1,2]"))
    stats = worker.run()
    detail = engine.job("a")

    assert detail.result == b"[1,2]"
    assert detail.job.state == State.DONE
    assert detail.job.finished_at >= detail.job.started_at
    (attempt,) = detail.history
    assert (attempt.number, attempt.worker, attempt.outcome) == (1, "w1", "done")
    assert attempt.error is None
    assert attempt.finished_at >= attempt.started_at
    (settled,) = worker.settled
    assert settled.state == State.DONE
    assert (
        stats.leased,
        stats.succeeded,
        stats.failed,
        stats.dead,
        stats.lost_leases,
    ) == (1, 1, 0, 0, 0)


def test_a_job_is_leased_while_it_runs(engine):
    engine.enqueue_many([new("a")])
    seen = []

    def look(attempt):
        detail = engine.job("a")
        leased = [counts.leased for counts in engine.counts()]
        seen.append((detail.job.state, detail.history[-1].outcome, leased))
        return Done()

    Worker(engine, look).run()

    assert seen == [(State.LEASED, "running", [1])]


def test_the_three_calls_of_one_attempt_are_made_in_one_thread(engine):
    engine.enqueue_many([new() for _ in range(10)])
    calls: dict[str, list[tuple[str, int]]] = {}

    def note(what):
        def call(value):
            attempt = value.attempt if isinstance(value, seam.Settled) else value
            calls.setdefault(attempt.id, []).append((what, threading.get_ident()))
            return Done()

        return call

    engine.run_worker(
        note("execute"),
        WorkerOptions(batch=True, concurrency=3, worker_id="w1"),
        stop=threading.Event(),
        on_start=note("start"),
        on_settled=note("settled"),
    )

    assert len(calls) == 10
    for made in calls.values():
        assert [what for what, _ in made] == ["start", "execute", "settled"]
        assert len({thread for _, thread in made}) == 1


def test_an_outcome_is_reported_after_it_can_be_read(engine):
    engine.enqueue_many([new("a")])
    seen = []
    engine.run_worker(
        lambda attempt: Done(),
        WorkerOptions(batch=True, worker_id="w1"),
        stop=threading.Event(),
        on_start=lambda attempt: None,
        on_settled=lambda settled: seen.append(engine.job("a").job.state),
    )

    assert seen == [State.DONE]


# --- failing -------------------------------------------------------------------------


def test_a_failed_job_is_tried_until_its_attempts_are_used_up(engine):
    engine.enqueue_many([new("a", max_attempts=3)])
    worker = Worker(engine, lambda attempt: Retry(error=OOPS))
    stats = worker.run()
    detail = engine.job("a")

    assert (stats.leased, stats.failed, stats.dead) == (3, 3, 1)
    assert [attempt.number for attempt in worker.started] == [1, 2, 3]
    assert [s.state for s in worker.settled] == [State.READY, State.READY, State.DEAD]
    assert [settled.delay for settled in worker.settled] == [0, 0, None]
    assert [attempt.outcome for attempt in detail.history] == ["failed"] * 3
    assert [attempt.error for attempt in detail.history] == [OOPS] * 3
    assert (
        detail.job.state,
        detail.job.error,
        detail.job.attempts,
    ) == (State.DEAD, OOPS, 3)
    assert detail.job.finished_at is not None
    assert detail.job.reason == "attempts"


def test_a_retry_waits_for_the_delay_that_was_asked_for(engine):
    engine.enqueue_many([new("a")])
    worker = Worker(engine, lambda attempt: Retry(error=OOPS, delay=3600.0))
    before = time.time()
    worker.run()
    view = engine.job("a").job

    assert (view.state, view.attempts) == (State.READY, 1)
    assert view.available_at >= before + 3599
    assert worker.settled[0].delay == 3600.0
    assert view.finished_at is None


def test_without_one_the_backoff_of_the_queue_decides(make_engine):
    engine = make_engine(
        QUEUES={"slow": {"BACKOFF": {"base": 100, "factor": 3, "jitter": 0}}}
    )
    engine.enqueue_many([new("a", "slow"), new("b")])
    worker = Worker(
        engine,
        lambda attempt: Retry(error=OOPS) if attempt.number == 1 else Done(),
    )
    worker.run()

    assert states(engine) == {"a": State.READY, "b": State.DONE}
    delays = {settled.attempt.id: settled.delay for settled in worker.settled[:2]}
    assert delays == {"a": 100, "b": 0}


def test_a_dead_outcome_leaves_no_further_attempt(engine):
    engine.enqueue_many([new("a", max_attempts=9)])
    stats = Worker(engine, lambda attempt: Dead(error=OOPS, reason="rejected")).run()
    view = engine.job("a").job

    assert (stats.leased, stats.failed, stats.dead) == (1, 1, 1)
    assert (view.state, view.reason, view.error) == (State.DEAD, "rejected", OOPS)


@pytest.mark.parametrize("raised", [ValueError, SystemExit, KeyboardInterrupt])
def test_whatever_execute_raises_is_a_failed_attempt(engine, raised):
    engine.enqueue_many([new("a", max_attempts=1), new("b", max_attempts=1)])

    def fail(attempt):
        raise raised("no")

    stats = Worker(engine, fail).run()

    assert states(engine) == {"a": State.DEAD, "b": State.DEAD}
    assert (stats.failed, stats.dead) == (2, 2)
    assert raised.__name__ in engine.job("a").job.error.type


# --- when a worker ends ----------------------------------------------------------------


def test_batch_runs_what_jobs_enqueue_while_they_run(engine):
    engine.enqueue_many([new("a")])

    def more(attempt):
        if attempt.id == "a":
            engine.enqueue_many([new("b")])
        return Done()

    worker = Worker(engine, more)
    worker.run()

    assert worker.ran == ["a", "b"]


def test_max_jobs_is_never_exceeded(engine):
    engine.enqueue_many([new() for _ in range(20)])
    stats = Worker(engine).run(max_jobs=7, concurrency=4, batch=False)

    assert (stats.leased, stats.succeeded) == (7, 7)
    assert engine.counts()[0].ready == 13


def test_an_idle_worker_ends_although_a_job_is_delayed(engine):
    engine.enqueue_many([new("later", run_at=time.time() + 3600)])
    stats = Worker(engine).run(batch=False, idle_timeout=0.1)

    assert stats.leased == 0


def test_a_job_that_waits_for_its_retry_keeps_the_worker(engine):
    engine.enqueue_many([new("a")])

    def once(attempt):
        return Retry(error=OOPS, delay=0.6) if attempt.number == 1 else Done()

    stats = Worker(engine, once).run(batch=False, idle_timeout=0.1)

    assert (stats.leased, stats.succeeded) == (2, 1)


def test_a_worker_that_waits_takes_up_what_comes(engine):
    worker = Worker(engine)
    thread = threading.Thread(target=worker.run, kwargs={"batch": False})
    thread.start()
    try:
        engine.enqueue_many([new("a")])
        wait_until(lambda: states(engine).get("a") is State.DONE)
    finally:
        worker.stop.set()
        thread.join(PATIENCE)

    assert not thread.is_alive()


def test_after_a_stop_what_runs_is_finished_and_nothing_more_claimed(engine):
    engine.enqueue_many([new("a"), new("b")])
    worker = Worker(engine)

    def stop(attempt):
        worker.stop.set()
        return Done()

    worker.act = stop
    stats = worker.run(batch=False)

    assert states(engine) == {"a": State.DONE, "b": State.READY}
    assert (stats.leased, stats.succeeded) == (1, 1)


def test_what_outlasts_the_grace_is_given_back_without_burning_the_attempt(engine):
    engine.enqueue_many([new("a", max_attempts=1)])
    worker = Worker(engine)
    release = threading.Event()

    def hang(attempt):
        worker.stop.set()
        release.wait(PATIENCE)
        return Done()

    worker.act = hang
    try:
        worker.run(batch=False, grace=0.0)
        detail = engine.job("a")
        assert (detail.job.state, detail.job.attempts) == (State.READY, 0)
        assert [attempt.outcome for attempt in detail.history] == ["released"]
    finally:
        release.set()

    second = Worker(engine)
    second.run(worker_id="w2")
    assert [attempt.number for attempt in second.started] == [1]
    assert states(engine)["a"] == State.DONE


def test_concurrency_is_how_many_jobs_run_at_a_time(engine):
    engine.enqueue_many([new() for _ in range(6)])
    together = threading.Barrier(3)
    lock = threading.Lock()
    now, most = 0, 0

    def meet(attempt):
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        together.wait(PATIENCE)
        with lock:
            now -= 1
        return Done()

    stats = Worker(engine, meet).run(concurrency=3)

    assert (stats.succeeded, most) == (6, 3)


def test_two_workers_never_run_the_same_job(engine):
    engine.enqueue_many([new(str(number)) for number in range(60)])
    workers = [Worker(engine), Worker(engine)]
    threads = [
        threading.Thread(target=worker.run, kwargs={"worker_id": f"w{n}"})
        for n, worker in enumerate(workers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    assert len(workers[0].ran + workers[1].ran) == 60
    assert len({*workers[0].ran, *workers[1].ran}) == 60


def test_a_lease_can_be_extended_from_inside(engine):
    engine.enqueue_many([new("a")])

    def extend(attempt):
        attempt.extend(120.0)
        return Done()

    assert Worker(engine, extend).run().succeeded == 1


# --- looking ------------------------------------------------------------------------


def test_counts_has_one_row_per_queue_by_name(engine):
    engine.enqueue_many([new("a", "z"), new("b", "a"), new("c", "a")])
    engine.enqueue_many([new("d", "a", run_at=time.time() + 3600)])
    Worker(engine).run(max_jobs=1, queues=("a",))
    first, second = engine.counts()

    assert (
        first.queue,
        first.ready,
        first.delayed,
        first.leased,
        first.done,
        first.dead,
    ) == ("a", 1, 1, 0, 1, 0)
    assert (second.queue, second.ready) == ("z", 1)
    waits_since = engine.job("a").job.enqueued_at
    assert waits_since == pytest.approx(second.oldest_ready_at, abs=0.01)


@pytest.mark.parametrize("newest_first", [True, False])
def test_pages_lead_through_all_jobs_once(engine, newest_first):
    names = [str(number) for number in range(7)]
    engine.enqueue_many([new(name) for name in names])
    found, after, pages = [], None, 0
    while pages < 10:
        page = engine.jobs(limit=3, after=after, newest_first=newest_first)
        found += [job.id for job in page.jobs]
        pages += 1
        after = page.next
        if after is None:
            break

    assert (names[::-1] if newest_first else names) == found
    assert pages == 3


def test_a_page_of_exactly_the_limit_is_the_last(engine):
    engine.enqueue_many([new(), new()])

    assert engine.jobs(limit=2).next is None


def test_lists_can_be_filtered(engine):
    engine.enqueue_many(
        [
            new("a", "one", kind="app.f", max_attempts=1),
            new("b", "one", kind="app.g", max_attempts=1),
            new("c", "two", kind="app.f", max_attempts=1),
        ]
    )
    Worker(engine, lambda attempt: Retry(error=OOPS)).run(queues=("two",))

    def ids(**filters):
        return {job.id for job in engine.jobs(**filters).jobs}

    assert {"c"} == ids(state=State.DEAD)
    assert {"c"} == ids(state=State.DEAD, queue="two")
    assert set() == ids(state=State.DEAD, queue="one")
    assert {"a", "b"} == ids(queue="one")
    assert {"a", "c"} == ids(kind="app.f")
    assert {"a"} == ids(kind="app.f", state=State.READY)
    assert set() == ids(queue="three")


# --- acting --------------------------------------------------------------------------


def test_a_requeued_job_starts_anew_and_keeps_its_history(engine):
    engine.enqueue_many([new("a", max_attempts=2)])
    Worker(engine, lambda attempt: Retry(error=OOPS)).run()
    moved = engine.requeue(["a"], by="ada")

    assert (moved.requeued, dict(moved.skipped)) == (("a",), {})
    assert (engine.job("a").job.state, engine.job("a").job.attempts) == (State.READY, 0)

    worker = Worker(engine)
    worker.run()
    detail = engine.job("a")
    assert [attempt.number for attempt in worker.started] == [1]
    assert detail.job.state == State.DONE
    assert [a.outcome for a in detail.history] == ["failed", "failed", "done"]


def test_only_dead_jobs_are_requeued_and_the_rest_is_told(engine):
    engine.enqueue_many([new("dead", max_attempts=1)])
    Worker(engine, lambda attempt: Retry(error=OOPS)).run()
    engine.enqueue_many([new("ready")])
    moved = engine.requeue(["ready", "nothing", "dead"])
    again = engine.requeue(["dead"])

    assert moved.requeued == ("dead",)
    assert {"ready", "nothing"} == set(moved.skipped)
    assert all(moved.skipped.values())
    assert ((), {"dead"}) == (again.requeued, set(again.skipped))


def test_a_discarded_job_never_runs_and_stays_readable(engine):
    engine.enqueue_many([new("dead", max_attempts=1)])
    Worker(engine, lambda attempt: Retry(error=OOPS)).run()
    engine.enqueue_many([new("ready")])
    moved = engine.discard(["dead", "ready", "nothing"])
    worker = Worker(engine)
    worker.run()

    assert ({"dead", "ready"}, {"nothing"}) == (set(moved.requeued), set(moved.skipped))
    assert worker.ran == []
    assert engine.job("ready").job.state == State.DISCARDED
    assert [attempt.outcome for attempt in engine.job("dead").history] == ["failed"]
    assert engine.counts() == []
    assert not engine.enqueue_many([new("dead")])[0].created


def test_nothing_is_wrong_with_a_store_that_was_just_made(engine):
    assert engine.problems() == []
    engine.enqueue_many([new()])
    Worker(engine).run()
    assert engine.problems() == []


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
