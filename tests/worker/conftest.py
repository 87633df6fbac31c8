"""A store on a disk and a clock that the test controls, and workers in threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from django_nobroker import BackoffPolicy, Queue
from django_nobroker.engine.shared import close_store, open_store
from django_nobroker.seam import Done, WorkerOptions
from django_nobroker.worker import batch, pace
from django_nobroker.worker.delivery import StoreOptions
from django_nobroker.worker.loop import Loop
from tests.doubles import PATIENCE, SteppedClock, WatchedDisk


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def disk():
    return WatchedDisk()


@pytest.fixture
def store(tmp_path, clock, disk):
    store = open_store(
        tmp_path / "jobs", clock=clock, vfs=disk, index_root=str(tmp_path)
    )
    yield store
    close_store(store)


@pytest.fixture
def queue(store):
    """A queue of the store whose retries come at once."""
    with Queue(store.directory, backoff=BackoffPolicy(base=0)) as queue:
        yield queue


@pytest.fixture
def short_jobs(monkeypatch):
    """Let every job count as a short one, however slow the machine is just now."""
    monkeypatch.setattr(pace, "BUDGET", 1e9)
    monkeypatch.setattr(batch, "BUDGET", 1e9)


@pytest.fixture
def no_relief(monkeypatch):
    """Let no job count as a long one."""
    monkeypatch.setattr(batch, "LATE", 1e9)


class RunningLoop:
    """A loop in a thread of its own, and the event that stops it."""

    def __init__(self, loop, stop):
        self._stop = stop
        self._threads = ThreadPoolExecutor(1)
        self._result = self._threads.submit(loop.run)

    def stop(self):
        self._stop.set()

    def stats(self):
        """What the loop returned, or raised."""
        try:
            return self._result.result(PATIENCE)
        finally:
            self._stop.set()
            self._threads.shutdown(wait=False)

    @property
    def is_over(self):
        return self._result.done()


@pytest.fixture
def start(store, queue):
    """Return a function that starts a loop which executes what it is given."""
    started = []

    def start_one(execute=lambda attempt: Done(), *, delay=0.0, **options):
        callbacks = {
            name: options.pop(name)
            for name in ("on_start", "on_settled")
            if name in options
        }
        interval = options.pop("heartbeat_interval", None)
        stop = threading.Event()
        loop = Loop(
            store,
            execute,
            WorkerOptions(**{"poll_interval": PATIENCE, **options}),
            use=StoreOptions(
                delay=lambda queue, attempt: delay, heartbeat_interval=interval
            ),
            stop=stop,
            **callbacks,
        )
        running = RunningLoop(loop, stop)
        started.append(running)
        return running

    yield start_one
    for running in started:
        running.stop()
