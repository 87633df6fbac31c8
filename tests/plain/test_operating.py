"""What an operator asks of a queue."""

from __future__ import annotations

import asyncio

import pytest

from django_nobroker import AsyncQueue, Worker
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


@pytest.mark.parametrize("verb", ["diagnostics", "workers", "set_aside"])
def test_a_closed_queue_answers_nothing(open_queue, verb):
    queue = open_queue()
    queue.close()

    with pytest.raises(QueueClosedError):
        getattr(queue, verb)()


def test_the_same_can_be_awaited(directory, queue):
    queue.enqueue(1)

    async def ask():
        async with AsyncQueue(directory) as twin:
            assert (await twin.diagnostics()).counts.ready == 1
            assert await twin.workers() == ()
            assert await twin.set_aside() == ()
            with pytest.raises(StorageError):
                await twin.read_set_aside("none")

    asyncio.run(ask())
