"""A disk that enqueues have filled still has room for finishing what is in the queue."""

from __future__ import annotations

import errno

import pytest

from django_nobroker.engine import room
from django_nobroker.engine.control import OWED
from django_nobroker.engine.errors import StorageError

from .driving import (
    ack,
    add,
    add_many,
    counts,
    kill,
    log_of,
    nack,
    payloads,
    take_one,
)


@pytest.fixture
def disk(store, files, monkeypatch):
    """A disk whose free bytes a test sets."""

    class Disk:
        free = 1 << 30

    made = Disk()
    monkeypatch.setattr(files, "free_bytes", lambda fd: made.free, raising=False)
    return made


def test_jobs_that_are_to_be_finished_are_counted(store):
    add(store)
    add_many(store, range(3))
    add(store, durable=False)
    assert store.control.words[OWED] == 5

    ack(store, take_one(store))
    kill(store)
    nack(store, take_one(store))
    assert store.control.words[OWED] == 3


def test_the_count_is_found_again_after_a_recovery(open_store, store, clock):
    add_many(store, range(4))
    ack(store, take_one(store))
    store.close()
    clock.restart()

    again = open_store(clock=clock)
    take_one(again)

    assert again.control.words[OWED] == 3


@pytest.mark.parametrize("durable", [True, False])
def test_enqueues_are_refused_while_completions_are_not(store, disk, durable):
    add_many(store, range(10))
    job = take_one(store)
    disk.free = room.MARGIN + 10 * room.PER_JOB
    store.entrance._writer._room.checked_to = -1
    before = log_of(store.directory)

    with pytest.raises(StorageError) as caught:
        add(store, durable=durable)
    with pytest.raises(StorageError):
        add_many(store, [1, 2], durable=durable)

    assert caught.value.errno == errno.ENOSPC
    assert "nearly full" in str(caught.value)
    assert log_of(store.directory) == before
    ack(store, job)
    for _ in range(9):
        ack(store, take_one(store))
    assert counts(store) == {"done": 10}


def test_enqueues_go_on_when_there_is_room_again(store, disk):
    disk.free = 0
    with pytest.raises(StorageError):
        add(store, "refused")
    disk.free = 1 << 30

    add(store, "taken")

    assert payloads(store) == {"ready": ["taken"]}


def test_the_disk_is_not_asked_for_every_job(store, files, monkeypatch):
    asked = []

    def free_bytes(fd):
        asked.append(fd)
        return 1 << 40

    monkeypatch.setattr(files, "free_bytes", free_bytes, raising=False)
    for n in range(100):
        add(store, n, durable=False)

    assert len(asked) == 1
