"""Durability: what is told durable is, and a sync that failed ends it all."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from django_nobroker.engine.control import DURABLE, END, FAILED
from django_nobroker.engine.errors import StorageError, StoreFailedError
from tests.faults.files import fails, lets, lets_after

from .driving import ack, add, add_many, log_of, nack, payloads, records, take, take_one

ROOT = Path(__file__).resolve().parents[2]


def test_the_end_is_taken_before_the_sync_and_published_after_it(
    open_store, store, clock, files
):
    """What another process writes during the sync may or may not be on disk."""
    other = open_store(clock=clock, handle="two")
    seen = []

    def meanwhile():
        seen.append(store.control.words[DURABLE])
        add(other, "meanwhile", durable=False)

    files.on("fdatasync", lets(meanwhile))

    job = add(store, "mine")

    assert seen == [job.at]
    words = store.control.words
    assert words[DURABLE] == records(store.directory)[-1].at
    assert words[DURABLE] < words[END]


def test_what_is_durable_already_needs_no_sync(store, files):
    job = add(store)
    files.forget()

    store.commit(job.at + 1)

    assert files.names() == []


def test_a_commit_covers_everything_written_so_far(store, files):
    first = add(store, durable=False)
    add(store, durable=False)

    store.commit(first.at + 1)

    assert store.control.words[DURABLE] == store.end


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_failed_sync_stops_every_handle_for_good(
    open_store, store, clock, files, number
):
    add(store, "before")
    job = take_one(store)
    other = open_store(clock=clock, handle="two")
    files.on("fdatasync", fails(number))

    with pytest.raises(StoreFailedError):
        add(store, "not acknowledged")

    assert store.failed
    assert other.failed
    for handle in (store, other):
        before = log_of(store.directory)
        for action in (
            lambda h: add(h, "x"),
            lambda h: add(h, "x", durable=False),
            lambda h: add_many(h, [1, 2]),
            take,
            lambda h: ack(h, job),
            lambda h: nack(h, job),
            lambda h: h.commit(h.end),
        ):
            with pytest.raises(StoreFailedError):
                action(handle)
        assert log_of(store.directory) == before
    assert files.count("fdatasync") >= 1


def test_a_failed_sync_is_never_tried_again(store, files):
    """The kernel may have dropped the pages, so a second sync would lie."""
    files.on("fdatasync", fails(errno.EIO))
    with pytest.raises(StoreFailedError):
        add(store)
    files.forget()

    with pytest.raises(StoreFailedError):
        add(store)

    assert files.count("fdatasync", "fsync", "write") == 0


def test_a_failed_sync_stops_processes_that_come_later(store, files, tmp_path):
    files.on("fdatasync", fails(errno.EIO))
    with pytest.raises(StoreFailedError):
        add(store)
    code = f"""
from tests.engine.driving import add
from tests.faults.hands import SettableClock
from django_nobroker.engine.errors import StoreFailedError
from django_nobroker.engine.store import Store
store = Store({store.directory!r}, index_root={str(tmp_path)!r}, clock=SettableClock())
try:
    add(store)
except StoreFailedError:
    print("refused")
store.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("refused\n", "")


def test_a_store_that_failed_can_still_be_looked_at(store, files):
    add(store, "before")
    files.on("fdatasync", fails(errno.EIO))
    with pytest.raises(StoreFailedError):
        add(store, "unknown")

    assert payloads(store) == {"ready": ["before", "unknown"]}


def test_after_a_restart_the_store_is_what_the_disk_holds(
    open_store, store, clock, files
):
    add(store, "before")
    files.on("fdatasync", fails(errno.EIO))
    with pytest.raises(StoreFailedError):
        add(store, "unknown")
    store.close()
    files.forget()
    clock.restart()

    again = open_store(clock=clock, vfs=files)

    assert not again.failed
    assert payloads(again)["ready"][0] == "before"
    add(again, "after")


def test_a_failure_seen_only_after_ones_own_sync_counts_too(store, files):
    """Another process met the error; this one's success says nothing."""

    def meanwhile():
        store.control.words[FAILED] = 1

    files.on("fdatasync", lets_after(meanwhile))

    with pytest.raises(StoreFailedError):
        add(store)


def test_a_file_that_cannot_be_opened_for_a_sync_is_no_failed_sync(
    open_store, directory, clock, files
):
    """Too many open files say nothing of the disk."""
    open_store(clock=clock).close()
    store = open_store(clock=clock, vfs=files)
    add(store, "relaxed", durable=False)
    files.forget()
    files.on("open", fails(errno.EMFILE))

    with pytest.raises(StorageError) as caught:
        store.commit(store.end)

    assert not isinstance(caught.value, StoreFailedError)
    assert not store.failed
    store.commit(store.end)
    assert store.control.words[DURABLE] == store.end


def test_relaxed_jobs_of_several_segments_become_durable_together(
    open_store, directory, clock, files
):
    store = open_store(clock=clock, vfs=files, segment_size=500)
    for n in range(12):
        add(store, n, durable=False)
    bases = len(list(Path(directory).glob("*.log")))
    files.forget()

    store.commit(store.end)

    assert bases > 3
    assert files.count("fdatasync") == bases
    assert files.count("fsync") == 1
    assert store.control.words[DURABLE] == store.end
