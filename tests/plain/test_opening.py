"""A queue that is opened for looking only, and what it refuses."""

from __future__ import annotations

import asyncio
import errno

import pytest

from django_nobroker import AsyncQueue, Queue, Worker
from django_nobroker.exceptions import CorruptLogError, StorageError

WRITING = {
    "enqueue": lambda queue, _job: queue.enqueue(1),
    "enqueue with an id": lambda queue, _job: queue.enqueue(1, job_id="b"),
    "enqueue_many": lambda queue, _job: queue.enqueue_many([1]),
    "enqueue_many of nothing": lambda queue, _job: queue.enqueue_many([]),
    "lease": lambda queue, _job: queue.lease(),
    "lease that waits": lambda queue, _job: queue.lease(wait=0.01),
    "lease_one": lambda queue, _job: queue.lease_one(),
    "ack": lambda queue, job: queue.ack(job),
    "nack": lambda queue, job: queue.nack(job),
    "fail": lambda queue, job: queue.fail(job),
    "extend": lambda queue, job: queue.extend(job, 1),
    "release": lambda queue, job: queue.release(job),
    "requeue_dead": lambda queue, _job: queue.requeue_dead(),
    "purge": lambda queue, _job: queue.purge(),
    "compact": lambda queue, _job: queue.compact(),
    "a worker": lambda queue, _job: Worker(queue, print, max_jobs=1).run(),
}


@pytest.mark.parametrize("verb", WRITING)
def test_a_queue_for_reading_refuses_every_verb_that_writes(open_queue, verb):
    """Even though the process has the store open for writing, by another queue."""
    queue = open_queue()
    queue.enqueue(1)
    job = queue.lease_one()
    end = queue.opened().end
    reader = open_queue(read_only=True)

    with pytest.raises(StorageError, match="for reading only") as caught:
        WRITING[verb](reader, job)
    assert caught.value.errno == errno.EROFS
    assert queue.opened().end == end


def test_a_queue_for_reading_sees_what_others_write(open_queue):
    queue = open_queue()
    queue.enqueue("a", job_id="a")
    reader = open_queue(read_only=True)
    queue.enqueue("b")

    assert reader.stats() == queue.stats()
    assert reader.get("a").payload == "a"
    assert [job.payload for job in reader.list_jobs()] == ["a", "b"]
    assert reader.verify().ok
    assert not reader.health().ok
    assert not reader.recovery.repaired


def test_a_queue_for_reading_makes_no_store(tmp_path):
    with pytest.raises(StorageError, match="No such file"):
        Queue(tmp_path / "jobs", read_only=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorruptLogError, match="holds no job log"):
        Queue(tmp_path / "empty", read_only=True)

    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_coroutines_can_look_only_too(directory, queue):
    queue.enqueue(1)

    async def main():
        async with AsyncQueue(directory, read_only=True) as reader:
            assert (await reader.stats()).ready == 1
            with pytest.raises(StorageError, match="for reading only"):
                await reader.lease()

    asyncio.run(main())
