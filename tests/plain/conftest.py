"""A queue on a disk and a clock that the test controls."""

from __future__ import annotations

import pytest

from django_nobroker import BackoffPolicy, Queue
from django_nobroker.engine.shared import close_store, open_store
from tests.doubles import SteppedClock, WatchedDisk


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def disk():
    return WatchedDisk()


@pytest.fixture
def directory(tmp_path, clock, disk, monkeypatch):
    """The store's directory; this process has it open with that clock and disk."""
    monkeypatch.setenv("NOBROKER_INDEX_DIR", str(tmp_path))
    store = open_store(
        tmp_path / "jobs", clock=clock, vfs=disk, index_root=str(tmp_path)
    )
    yield tmp_path / "jobs"
    close_store(store)


@pytest.fixture
def open_queue(directory):
    """Return a function that opens a queue; retries come at once unless it says else."""
    opened = []

    def open_one(name="default", **options):
        options.setdefault("backoff", BackoffPolicy(base=0))
        opened.append(Queue(directory, name, **options))
        return opened[-1]

    yield open_one
    for queue in opened:
        queue.close()


@pytest.fixture
def queue(open_queue):
    return open_queue()
