"""What a worker does for its store without being asked."""

from __future__ import annotations

import logging
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_nobroker import Queue, Worker
from django_nobroker.engine.locks import Maintenance
from django_nobroker.engine.retention import Terms
from django_nobroker.engine.tables import Meta
from django_nobroker.worker import upkeep
from django_nobroker.worker.upkeep import Upkeep, is_due
from tests.doubles import PATIENCE

MIB = 1 << 20


@pytest.fixture
def queue(tmp_path):
    with Queue(tmp_path / "jobs", fsync=False) as queue:
        yield queue


def size_of(directory):
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def wait_until(condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def fill(queue, jobs=200):
    for _ in range(jobs // 50):
        queue.enqueue_many(["x" * 1000] * 50)
        for job in queue.lease(50):
            job.ack()


def test_a_small_log_is_left_alone():
    assert not is_due(Meta(applied=8 * MIB, live=0), 0)
    assert is_due(Meta(applied=8 * MIB + 1, live=0), 0)


def test_what_nobody_needs_must_outweigh_what_is_needed():
    assert not is_due(Meta(applied=100 * MIB, live=50 * MIB), 0)
    assert is_due(Meta(applied=100 * MIB, live=45 * MIB), 0)


@given(
    first=st.integers(0, 2**40), used=st.integers(0, 2**40), live=st.integers(0, 2**40)
)
def test_only_what_is_there_counts(first, used, live):
    meta = Meta(applied=first + used, live=live)

    assert is_due(meta, first) == is_due(Meta(applied=used, live=live), 0)
    if live >= used / 2:
        assert not is_due(meta, first)


def test_a_look_lets_ended_jobs_go_and_compacts(queue, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(upkeep, "_LEAST", 0.0)
    monkeypatch.setattr(upkeep, "_WORTH_IT", 1000)
    caplog.set_level(logging.INFO, logger="django_nobroker.worker")
    queue.enqueue("kept", delay=1000)
    fill(queue)

    Upkeep(queue.opened(), lambda name: Terms(), timeout=5).look()

    assert (queue.stats().done, queue.stats().delayed) == (0, 1)
    assert size_of(tmp_path / "jobs") < 5000
    assert "The log was compacted" in caplog.text


def test_jobs_of_queues_that_it_does_not_know_stay(queue, monkeypatch):
    monkeypatch.setattr(upkeep, "_LEAST", 0.0)
    fill(queue, 50)

    Upkeep(queue.opened(), lambda name: None, timeout=5).look()

    assert queue.stats().done == 50


def test_a_job_that_has_just_ended_stays_for_a_minute(queue):
    fill(queue, 50)

    Upkeep(queue.opened(), lambda name: Terms(), timeout=5).look()

    assert queue.stats().done == 50


def test_a_worker_tidies_the_store_while_it_runs(queue, tmp_path, monkeypatch):
    monkeypatch.setattr(upkeep, "_LEAST", 0.0)
    monkeypatch.setattr(upkeep, "_WORTH_IT", 1000)
    monkeypatch.setattr(upkeep, "_PAUSE", 0.01)
    worker = Worker(queue, lambda job: None, handle_signals=False)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        queue.enqueue_many(["x" * 1000] * 100)
        wait_until(lambda: queue.stats().total == 0)
        wait_until(lambda: size_of(tmp_path / "jobs") < 10_000)
        queue.enqueue("more")
        wait_until(lambda: queue.stats().total == 0)
    finally:
        worker.stop()
        thread.join()


def test_a_backup_comes_first(queue, monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(upkeep, "_LEAST", 0.0)
    monkeypatch.setattr(upkeep, "_WORTH_IT", 1000)
    monkeypatch.setattr(upkeep, "_PAUSE", 0.01)
    caplog.set_level(logging.DEBUG, logger="django_nobroker.worker")
    fill(queue)
    store = queue.opened()
    care = Upkeep(store, lambda name: Terms(), timeout=5)
    with Maintenance(store.directory, store.vfs, store.clock).shared():
        care.start()
        wait_until(lambda: "not compacted" in caplog.text)
        assert size_of(tmp_path / "jobs") > 200_000
    wait_until(lambda: size_of(tmp_path / "jobs") < 5000)
    care.stop()


def test_an_error_is_told_and_the_worker_goes_on(queue, monkeypatch, caplog):
    def broken(name):
        raise RuntimeError("broken")

    queue.enqueue("a")
    care = Upkeep(queue.opened(), broken, timeout=5)
    care.start()
    wait_until(lambda: "upkeep of the store failed" in caplog.text)
    care.stop()
    assert queue.stats().ready == 1
