"""What type checkers infer of queues, jobs and workers, and accept without a word."""

from __future__ import annotations

from typing import Any, assert_type

from django_nobroker import (
    AsyncQueue,
    Job,
    JsonSerializer,
    MsgpackSerializer,
    Queue,
    Serializer,
    Undecodable,
    Worker,
    WorkerStats,
)
from django_nobroker.exceptions import DuplicateJobError

from .payloads import Order, OrderSerializer


def handle_order(job: Job[Order]) -> None:
    assert_type(job.payload, Order)
    assert_type(job.payload.number, int)
    assert_type(job.nack(delay=1), Job[Order])


def handle_any(job: Job) -> int:
    return job.payload + 1  # type: ignore[no-any-return]  # nobody knows what it is


def of_anything(path: str) -> None:
    assert_type(Queue(path), Queue[Any])
    assert_type(Queue(path, "name", serializer=None), Queue[Any])
    assert_type(Queue(path, serializer=JsonSerializer()), Queue[Any])
    assert_type(Queue(path, serializer=MsgpackSerializer()), Queue[Any])
    assert_type(AsyncQueue(path), AsyncQueue[Any])
    queue = Queue(path)
    queue.enqueue({"a": [1, None]})
    queue.enqueue_many(range(3))
    Worker(queue, handle_any)
    Worker(queue, handle_order)


def of_orders(path: str) -> None:
    with Queue(path, serializer=OrderSerializer()) as queue:
        assert_type(queue, Queue[Order])
        made = queue.enqueue(Order(1), job_id="a", on_conflict="error")
        assert_type(made, Job[Order])
        assert_type(made.created, bool)
        assert_type(made.conflict, bool)
        assert_type(queue.enqueue_many([Order(1)]), list[Job[Order]])
        assert_type(queue.lease_one(wait=1.0), Job[Order] | None)
        assert_type(queue.lease(3), list[Job[Order]])
        assert_type(queue.get("a").payload, Order)
        assert_type(queue.dlq(limit=1), list[Job[Order]])
        with queue.processing() as job:
            assert_type(job, Job[Order])
        worker = Worker(queue, handle_order)
        assert_type(worker, Worker[Order])
        assert_type(worker.run(), WorkerStats)
        queue.requeue_dead(matching=lambda dead: dead.payload.number > 1)


async def of_orders_awaited(path: str) -> None:
    async with AsyncQueue(path, serializer=OrderSerializer()) as queue:
        assert_type(queue, AsyncQueue[Order])
        assert_type(await queue.enqueue(Order(1)), Job[Order])
        assert_type(await queue.enqueue_many([Order(1)]), list[Job[Order]])
        assert_type(await queue.lease_one(), Job[Order] | None)
        async with queue.processing(wait=1) as job:
            assert_type(job.payload, Order)


def of_a_type_that_is_only_said(path: str) -> None:
    said: Queue[dict[str, int]] = Queue(path)
    assert_type(said.enqueue({"a": 1}).payload, dict[str, int])
    assert_type(Queue[list[str]](path).lease(2), list[Job[list[str]]])


def of_values(shown: Job[Order], error: DuplicateJobError) -> None:
    serializer: Serializer[Order] = OrderSerializer()
    assert_type(serializer.loads(b"1"), Order)
    anything: Serializer[Any] = MsgpackSerializer()
    assert_type(anything.dumps(1), bytes)
    payload: Order | Undecodable = shown.payload
    if isinstance(payload, Undecodable):
        assert_type(payload.data, bytes | None)
    assert_type(error.job_id, str)
