"""What an operator asks of a queue."""

from __future__ import annotations

import asyncio

import pytest

from django_nobroker import AsyncQueue, Queue, Worker
from django_nobroker.engine.locks import StoreLock
from django_nobroker.engine.vfs import Access, Vfs
from django_nobroker.exceptions import QueueClosedError, StorageError


def test_diagnostics_tell_the_options_of_this_queue(open_queue):
    queue = open_queue("emails", fsync=False, max_pending=9, lock_timeout=3.0)
    queue.enqueue(1)

    found = queue.diagnostics()

    assert found.queue == "emails"
    assert found.counts.ready == 1
    assert (found.capacity.max_pending, found.capacity.pending) == (9, 1)
    assert (found.durability.fsync, found.lock_timeout) == (False, 3.0)


def test_a_plain_worker_is_seen_by_another_queue_of_the_store(open_queue):
    queue, other = open_queue("a"), open_queue("b")
    seen = []
    queue.enqueue(1)

    Worker(
        queue, lambda job: seen.extend(other.workers()), max_jobs=1, concurrency=1
    ).run()

    assert [one.queues for one in seen] == [("a",)]
    assert other.workers() == ()


def test_nothing_was_set_aside_in_a_sound_store(queue):
    assert queue.set_aside() == ()
    with pytest.raises(StorageError, match="Nothing of that name"):
        queue.read_set_aside("none")


def test_what_was_set_aside_is_listed_and_can_be_read(directory, queue, disk):
    path = next(directory.glob("*.log"))
    with path.open("ab") as log:
        log.write(b"torn")
    queue.enqueue(1)  # the next writer cuts it off

    (entry,) = queue.set_aside()

    assert queue.read_set_aside(entry.name) == b"torn"


@pytest.mark.parametrize(
    "verb",
    ["diagnostics", "workers", "set_aside", "health", "check_integrity", "verify"],
)
def test_a_closed_queue_answers_nothing(open_queue, verb):
    queue = open_queue()
    queue.close()

    with pytest.raises(QueueClosedError):
        getattr(queue, verb)()


@pytest.mark.parametrize(
    "verb",
    ["diagnostics", "workers", "set_aside", "health", "check_integrity", "verify"],
)
def test_looking_does_not_wait_for_the_lock_of_the_store(queue, directory, verb):
    """A process that is stopped while it writes must not blind the operator."""
    queue.enqueue(1)
    lock = StoreLock(str(directory), Vfs(), Access())
    with lock.held(1):
        getattr(queue, verb)()
    lock.close()


def test_a_backup_does_not_wait_for_the_lock_of_the_store(queue, directory, tmp_path):
    queue.enqueue(1)
    lock = StoreLock(str(directory), Vfs(), Access())
    with lock.held(1):
        assert queue.backup(tmp_path / "copy").ok
    lock.close()


def test_the_same_can_be_awaited(directory, queue):
    queue.enqueue(1)

    async def ask():
        async with AsyncQueue(directory) as twin:
            assert (await twin.diagnostics()).counts.ready == 1
            assert await twin.workers() == ()
            assert not (await twin.health()).ok
            assert await twin.set_aside() == ()
            with pytest.raises(StorageError):
                await twin.read_set_aside("none")

    asyncio.run(ask())


# --- checks and copies -----------------------------------------------------------


def test_a_sound_store_passes_every_check(queue):
    queue.enqueue(1)
    seen = []

    assert queue.check_integrity().ok
    assert queue.check_integrity("quick").mode == "quick"
    assert queue.verify(progress=lambda *far: seen.append(far)).ok
    assert queue.rebuild_index() == 1
    assert seen


def test_damage_is_told_with_the_job_it_hit(directory, queue):
    job = queue.enqueue("x" * 100)
    queue.enqueue(2)
    (path,) = directory.glob("*.log")
    data = bytearray(path.read_bytes())
    data[job.position + 100] ^= 1
    path.write_bytes(data)

    for found in (queue.check_integrity(), queue.verify()):
        assert not found.ok
        assert found.errors[0].job == job.id


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"mode": "half"}, ValueError),
        ({"mode": 1}, TypeError),
        ({"max_errors": 0}, ValueError),
        ({"max_errors": 1001}, ValueError),
        ({"max_errors": True}, TypeError),
        ({"max_errors": 1.0}, TypeError),
    ],
)
def test_wrong_arguments_of_a_check_are_refused(queue, arguments, error):
    with pytest.raises(error):
        queue.check_integrity(**arguments)
    if "mode" not in arguments:
        with pytest.raises(error):
            queue.verify(**arguments)


def test_a_backup_is_a_store_with_the_same_jobs(queue, tmp_path):
    jobs = queue.enqueue_many(["a", "b"])

    made = queue.backup(tmp_path / "copy")

    assert made.ok
    with Queue(tmp_path / "copy") as copied:
        assert [job.id for job in copied.list_jobs()] == [job.id for job in jobs]
    with pytest.raises(FileExistsError):
        queue.backup(tmp_path / "copy")


def test_a_relative_backup_goes_to_the_current_directory(queue, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    queue.backup("copy")

    assert (tmp_path / "here" / "copy").is_dir()


def test_checks_and_copies_can_be_awaited(directory, queue, tmp_path):
    queue.enqueue(1)

    async def ask():
        async with AsyncQueue(directory) as twin:
            assert (await twin.check_integrity("quick")).ok
            assert (await twin.verify()).ok
            assert await twin.rebuild_index() == 1
            assert (await twin.backup(tmp_path / "copy")).ok

    asyncio.run(ask())
