"""What type checkers refuse: each line says what is wrong with it; no other is refused."""

from __future__ import annotations

from django_nobroker import AsyncQueue, Job, Queue, Serializer, Worker

from .payloads import HalfSerializer, Order, OrderSerializer


def handle_text(job: Job[str]) -> None:
    job.ack()


def jobs(queue: Queue[Order], job: Job[Order], text: Job[str]) -> None:
    queue.enqueue("text")  # wrong argument
    queue.enqueue_many(["text"])  # wrong item
    queue.enqueue(Order(1), on_conflict="ignore")  # wrong argument
    queue.ack(text)  # wrong argument
    queue.extend(text, 1)  # wrong argument
    print(job.payload.name)  # wrong attribute
    job.payload = Order(2)  # wrong: frozen
    queue.lease_one().ack()  # wrong: optional
    wrong: Job[str] = queue.enqueue(Order(1))  # wrong assignment
    queue.requeue_dead(matching=handle_text)  # wrong argument
    del wrong


def workers(queue: Queue[Order]) -> None:
    Worker(queue, handle_text)  # wrong argument
    Worker(queue, queue.stats)  # wrong argument


def serializers(path: str) -> None:
    Queue(path, serializer=HalfSerializer())  # wrong argument
    Queue[str](path, serializer=OrderSerializer())  # wrong argument
    AsyncQueue[str](path, serializer=OrderSerializer())  # wrong argument
    Queue(path, serializer=OrderSerializer)  # wrong argument
    wrong: Serializer[str] = OrderSerializer()  # wrong assignment
    Queue(path, serializer=OrderSerializer()).enqueue(1)  # wrong argument
    del wrong


async def awaited(queue: AsyncQueue[Order]) -> None:
    await queue.enqueue("text")  # wrong argument
    print(queue.enqueue(Order(1)).payload)  # wrong attribute
    await queue.enqueue(Order(1), conflict="error")  # wrong call
