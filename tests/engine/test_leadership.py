"""Threads that commit together: all are served, none is harmed by another."""

from __future__ import annotations

import errno
import signal
import threading
import time

import pytest

from django_nobroker.engine import enqueue
from django_nobroker.engine.errors import (
    LockTimeoutError,
    SerializationError,
    StorageError,
    StoreFailedError,
)
from django_nobroker.engine.record import Enqueue
from tests.faults.files import fails, lets, raises, raises_after

from .driving import TIMEOUT, add, new, payloads, records


class Threads:
    """Threads whose answers and errors are kept."""

    def __init__(self):
        self.answers = {}
        self.errors = {}
        self.names = []
        self.released = threading.Event()
        self._threads = []

    def start(self, name, action):
        def run():
            try:
                self.answers[name] = action()
            except BaseException as error:
                self.errors[name] = error

        thread = threading.Thread(target=run, name=str(name))
        self.names.append(name)
        self._threads.append(thread)
        thread.start()
        return thread

    def join(self):
        self.released.set()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive(), f"{thread.name} was never served"


def waiting(store):
    return len(store.entrance._waiting)


def until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.001)


def gather(store, files, names, action):
    """Let the first thread sync until all others wait behind it, and are joined."""
    threads = Threads()
    started = threading.Event()

    def hold():
        started.set()
        assert threads.released.wait(30)

    files.on("fdatasync", lets(hold))
    threads.start("leader", lambda: add(store, "leader"))
    assert started.wait(20)
    for name in names:
        threads.start(name, lambda name=name: action(name))
        until(lambda: waiting(store) == len(threads.names) - 1)
    return threads


def test_threads_share_writes_and_syncs(store, files):
    names = [f"job {n}" for n in range(16)]
    files.forget()

    threads = gather(store, files, names, lambda name: add(store, name))
    threads.join()

    assert threads.errors == {}
    assert files.count("fdatasync") == 2
    assert files.count("write") == 2
    assert sorted(payloads(store)["ready"]) == sorted([*names, "leader"])


def test_many_threads_need_fewer_syncs_than_jobs_and_every_job_is_in_the_log(
    store, files
):
    files.forget()
    threads = Threads()
    for n in range(8):
        threads.start(n, lambda n=n: [add(store, [n, i]).id for i in range(25)])
    threads.join()

    assert threads.errors == {}
    ids = [one for answers in threads.answers.values() for one in answers]
    logged = {one.id for one in records(store.directory) if isinstance(one, Enqueue)}
    assert len(set(ids)) == 200
    assert set(ids) == logged
    assert files.count("fdatasync") < 200


def test_each_thread_gets_its_own_answer(store, files):
    names = [f"id-{n}" for n in range(8)]

    threads = gather(store, files, names, lambda name: add(store, name, job_id=name))
    threads.join()

    for name in names:
        found = store.look(lambda tables, name=name: tables.find(name))
        assert threads.answers[name].at == found[0]


def test_jobs_of_one_round_know_each_other(store, files):
    """The same id given by several threads at once is enqueued once."""
    threads = gather(
        store,
        files,
        list(range(6)),
        lambda n: enqueue.place(
            store, [new(store, n, job_id="same")], durable=True, timeout=TIMEOUT
        ),
    )
    threads.join()

    assert threads.errors == {}
    assert len(payloads(store)["ready"]) == 2


def test_an_exception_in_one_decision_does_not_harm_the_others(store, files):
    def action(name):
        if name == "bad":
            return store.run(lambda transaction: 1 / 0, timeout=TIMEOUT, durable=True)
        if name == "huge":
            huge = new(store, 1)
            huge.kind = "x" * 100_000_000
            return enqueue.place(store, [huge], durable=True, timeout=TIMEOUT)
        return add(store, name)

    threads = gather(store, files, ["a", "bad", "b", "huge", "c"], action)
    threads.join()

    assert isinstance(threads.errors.pop("bad"), ZeroDivisionError)
    assert isinstance(threads.errors.pop("huge"), SerializationError)
    assert threads.errors == {}
    found = payloads(store)
    assert list(found) == ["ready"]
    # Who comes second is the scheduler's choice.
    assert sorted(found["ready"]) == ["a", "b", "c", "leader"]


def test_what_does_not_fit_together_is_tried_one_by_one(store, files):
    """A full disk may still hold the small ones, and their ids are right."""
    threads = gather(store, files, ["a", "b"], lambda name: add(store, name))
    files.on("write", fails(errno.ENOSPC))
    threads.join()

    assert threads.errors == {}
    for name in "ab":
        job = threads.answers[name]
        assert store.look(lambda tables, job=job: tables.find(job.id))[0] == job.at
    assert sorted(payloads(store)["ready"]) == ["a", "b", "leader"]


def test_a_full_disk_is_told_to_everybody_whom_it_concerns(store, files):
    threads = gather(store, files, ["a", "b", "c"], lambda name: add(store, name))
    files.on("write", fails(errno.ENOSPC), again=True)
    threads.join()

    assert sorted(threads.errors) == ["a", "b", "c"]
    assert all(isinstance(one, StorageError) for one in threads.errors.values())
    assert len({id(one) for one in threads.errors.values()}) == 3
    files.forget()
    add(store, "after")
    assert payloads(store) == {"ready": ["leader", "after"]}


def test_a_failed_sync_is_told_to_everybody_in_the_round(store, files):
    threads = gather(store, files, ["a", "b", "c"], lambda name: add(store, name))
    files.on("fdatasync", fails(errno.EIO))
    threads.join()

    assert sorted(threads.errors) == ["a", "b", "c"]
    assert all(isinstance(one, StoreFailedError) for one in threads.errors.values())


def test_a_lock_that_is_held_is_told_to_everybody_and_the_lead_goes_on(
    open_store, store, clock, files
):
    other = open_store(clock=clock, handle="two")

    def short(name):
        jobs = [new(store, name)]
        return enqueue.place(store, jobs, durable=True, timeout=0.2)

    threads = gather(store, files, ["a", "b"], short)
    with other.lock.held(5):
        threads.join()

    assert all(isinstance(one, LockTimeoutError) for one in threads.errors.values())
    add(store, "after")


@pytest.mark.parametrize("fault", [raises, raises_after])
@pytest.mark.parametrize("name", ["stat", "write", "fdatasync"])
def test_a_signal_in_the_leader_leaves_the_followers_served_once(
    store, files, fault, name
):
    threads = gather(store, files, ["a", "b", "c"], lambda job: add(store, job))
    files.on(name, fault(KeyboardInterrupt()))
    threads.join()

    (interrupted,) = threads.errors
    assert isinstance(threads.errors[interrupted], KeyboardInterrupt)
    served = {"a", "b", "c"} - {interrupted}
    found = payloads(store)["ready"]
    assert served <= set(found)
    assert len(found) == len(set(found)), found
    add(store, "after")


class Stopped(BaseException):
    """What a signal's handler raises."""


@pytest.mark.parametrize("lead", [False, True])
def test_a_signal_in_a_waiting_follower_leaves_the_others_served(store, files, lead):
    """Also when it would have been the next to lead."""
    threads = Threads()
    started, release = threading.Event(), threading.Event()

    def hold():
        started.set()
        release.wait(20)

    def handler(*arguments):
        raise Stopped

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        files.on("fdatasync", lets(hold))
        threads.start("leader", lambda: add(store, "leader"))
        assert started.wait(20)
        if not lead:
            threads.start("first", lambda: add(store, "first"))
            until(lambda: waiting(store) == 1)
        main = threading.get_ident()

        def stop_main():
            until(lambda: waiting(store) == (1 if lead else 2))
            signal.pthread_kill(main, signal.SIGUSR1)

        threads.start("stopper", stop_main)
        with pytest.raises(Stopped):
            add(store, "stopped")
        threads.start("late", lambda: add(store, "late"))
        release.set()
        threads.join()
    finally:
        release.set()
        signal.signal(signal.SIGUSR1, before)

    assert threads.errors == {}
    add(store, "after")
    found = payloads(store)["ready"]
    assert {"leader", "late", "after"} <= set(found)
    assert "stopped" not in found


def test_a_relaxed_job_does_not_wait_for_a_sync_that_is_on_its_way(store, files):
    threads = Threads()
    started, release = threading.Event(), threading.Event()

    def hold():
        started.set()
        assert release.wait(20)

    files.on("fdatasync", lets(hold))
    threads.start("leader", lambda: add(store, "leader"))
    assert started.wait(20)

    add(store, "relaxed", durable=False)

    release.set()
    threads.join()
    assert payloads(store) == {"ready": ["leader", "relaxed"]}


def test_a_signal_in_a_follower_that_was_just_named_leader_hands_the_lead_on(
    store, files
):
    threads = Threads()
    started, release = threading.Event(), threading.Event()

    def hold():
        started.set()
        release.wait(20)

    def handler(*arguments):
        (mine, _) = store.entrance._waiting
        release.set()
        until(lambda: not mine.wake.locked())
        raise Stopped

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        files.on("fdatasync", lets(hold))
        threads.start("leader", lambda: add(store, "leader"))
        assert started.wait(20)
        main = threading.get_ident()

        def stop_main():
            until(lambda: waiting(store) == 1)
            threads.start("late", lambda: add(store, "late"))
            until(lambda: waiting(store) == 2)
            signal.pthread_kill(main, signal.SIGUSR1)

        threads.start("stopper", stop_main)
        with pytest.raises(Stopped):
            add(store, "stopped")
        threads.join()
    finally:
        release.set()
        signal.signal(signal.SIGUSR1, before)

    assert threads.errors == {}
    assert payloads(store) == {"ready": ["leader", "late"]}
