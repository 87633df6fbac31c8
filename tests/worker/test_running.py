"""The heartbeat: as long as a job runs, nobody else is given it."""

from __future__ import annotations

import threading

from django_nobroker.seam import Done, WorkerStats
from tests.doubles import PATIENCE


def test_a_handler_may_take_longer_than_its_lease(start, queue, disk):
    queue.enqueue(1)
    go_on = threading.Event()

    def execute(attempt):
        assert go_on.wait(PATIENCE)
        return Done()

    worker = start(execute, lease=0.3)
    disk.wait_for(lambda: disk.written("extend") >= 6)  # twice the lease
    assert queue.lease_one() is None
    go_on.set()

    queue.enqueue("last")
    worker.stop()
    assert worker.stats().lost_leases == 0
    assert queue.list_jobs()[0].attempts == 1
    assert queue.list_jobs()[0].state == "done"


def test_the_heartbeat_goes_on_while_a_stopped_worker_finishes(start, queue, disk):
    queue.enqueue(1)
    begun, go_on = threading.Event(), threading.Event()

    def execute(attempt):
        begun.set()
        assert go_on.wait(PATIENCE)
        return Done()

    worker = start(execute, lease=0.3)
    assert begun.wait(PATIENCE)
    worker.stop()
    before = disk.written("extend")
    disk.wait_for(lambda: disk.written("extend") >= before + 6)
    assert queue.lease_one() is None
    go_on.set()

    assert worker.stats() == WorkerStats(leased=1, succeeded=1)


def test_every_job_of_every_thread_is_kept(start, queue, disk):
    queue.enqueue_many(range(3))
    begun, go_on = threading.Barrier(4), threading.Event()

    def execute(attempt):
        begun.wait(PATIENCE)
        assert go_on.wait(PATIENCE)
        return Done()

    worker = start(execute, lease=0.3, concurrency=3, max_jobs=3)
    begun.wait(PATIENCE)
    before = disk.written("extend")
    disk.wait_for(lambda: disk.written("extend") >= before + 18)
    assert queue.lease(5) == []
    go_on.set()

    assert worker.stats() == WorkerStats(leased=3, succeeded=3)


def test_the_heartbeat_may_come_more_often(start, queue, disk):
    queue.enqueue(1)

    def execute(attempt):
        disk.wait_for(lambda: disk.written("extend") >= 2)
        return Done()

    stats = start(execute, heartbeat_interval=0.05, max_jobs=1).stats()

    assert stats == WorkerStats(leased=1, succeeded=1)


def test_the_heartbeat_survives_a_full_disk(start, queue, disk):
    queue.enqueue(1)

    def execute(attempt):
        disk.full_for = 2
        disk.wait_for(lambda: disk.refused == 2 and disk.written("extend") >= 1)
        return Done()

    stats = start(execute, lease=0.5, heartbeat_interval=0.05, max_jobs=1).stats()

    assert stats == WorkerStats(leased=1, succeeded=1)


def test_a_heartbeat_leaves_a_longer_extension_alone(start, queue, disk, clock):
    queue.enqueue(1)

    def execute(attempt):
        disk.wait_for(lambda: disk.written("extend") >= 1)
        attempt.extend(1000)
        clock.advance(900)
        before = disk.written("extend")
        assert queue.lease_one() is None
        assert disk.written("extend") == before
        return Done()

    stats = start(execute, lease=0.3, max_jobs=1).stats()

    assert stats == WorkerStats(leased=1, succeeded=1)


def test_nothing_is_written_while_nothing_runs(start, queue, disk, store):
    worker = start(heartbeat_interval=0.05, idle_timeout=0.3)

    assert worker.stats() == WorkerStats()
    assert disk.written("extend") == 0
