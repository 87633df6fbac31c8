"""Payloads of every kind on their way through a queue, and those that are none."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_nobroker import (
    AsyncQueue,
    JobState,
    JsonSerializer,
    MsgpackSerializer,
    Queue,
    Undecodable,
    Worker,
    WorkerStats,
)
from django_nobroker.engine import enqueue
from django_nobroker.exceptions import SerializationError
from django_nobroker.payload import LIMIT
from django_nobroker.plain.coding import coding

KEYS = st.sampled_from(["$bytes", "$json", "serializer", "$", "a"])
LIKE_TAGS = st.recursive(
    st.text("ab=") | st.none(),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner),
    max_leaves=8,
)


@dataclasses.dataclass
class Order:
    number: int
    at: dt.date


class OrderSerializer:
    """Someone else's bytes; no order of a negative number can be read back."""

    def dumps(self, value):
        return f"{value.number} {value.at}".encode("utf-16")

    def loads(self, data):
        number, at = data.decode("utf-16").split()
        if int(number) < 0:
            raise SystemExitLikeError(number)
        return Order(int(number), dt.date.fromisoformat(at))


class SystemExitLikeError(Exception):
    def __str__(self):
        raise SystemExit("not even this")


def put(queue, text, **options):
    """Enqueue the text of a payload as another program would have written it."""
    record = enqueue.new(
        queue=queue.name, payload=text, now=1.0, max_attempts=5, **options
    )
    enqueue.place(queue.opened(), [record], durable=True, timeout=20.0)
    return record


BROKEN = [
    (b"1" * 5000, "it is not JSON: "),
    (b'{"$bytes":"gaFhAQ==","serializer":"msgpack"}', "by the serializer msgpack"),
    (b'{"$bytes":"?","serializer":"msgpack"}', "the tagged bytes are damaged"),
    (b'{"$bytes":1}', "the tagged bytes are damaged"),
    (b'{"$json":{"$bytes":' + b"1" * 5000 + b"}}", "it is not JSON"),
]
broken = pytest.mark.parametrize(
    ("text", "error"), BROKEN, ids=[text[:12].decode() for text, _ in BROKEN]
)


# --- serializers ------------------------------------------------------------------------


@settings(deadline=None)
@given(LIKE_TAGS)
def test_json_that_looks_like_the_bytes_of_a_serializer_stays_json(value):
    json_coding = coding(None)

    text, back = json_coding.encode(value)

    assert back == value == json_coding.decode(text)
    assert json_coding.encode_all([value, 1]) == ([text, b"1"], [value, 1])


@pytest.mark.parametrize("serializer", [None, JsonSerializer()], ids=["none", "json"])
def test_json_is_readable_in_the_log(open_queue, directory, serializer):
    queue = open_queue(serializer=serializer)
    lookalike = {"$bytes": "AA==", "serializer": "msgpack"}

    jobs = queue.enqueue_many([{"a": "\u00e9"}, lookalike])

    assert (
        '"payload":{"a":"\u00e9"}'.encode()
        in next(directory.glob("*.log")).read_bytes()
    )
    assert [job.payload for job in jobs] == [{"a": "\u00e9"}, lookalike]
    assert queue.get(jobs[1].id).payload == lookalike
    assert [job.payload for job in queue.lease(2)] == [{"a": "\u00e9"}, lookalike]


def test_messagepack_goes_through_a_queue_and_its_worker(open_queue, directory):
    queue = open_queue(serializer=MsgpackSerializer())
    value = {"image": b"\x00\xff", 1: (2, None)}
    back = {"image": b"\x00\xff", 1: [2, None]}

    made = queue.enqueue(value)
    many = queue.enqueue_many([value])
    seen = []
    stats = Worker(
        queue, lambda job: seen.append(job.payload), max_jobs=2, idle_timeout=0.01
    ).run()

    assert made.payload == many[0].payload == back
    assert seen == [back, back]
    assert stats == WorkerStats(leased=2, succeeded=2)
    assert queue.get(made.id).payload == back
    log = next(directory.glob("*.log")).read_text()
    assert '"serializer":"msgpack"}' in log


def test_any_object_with_dumps_and_loads_will_do(open_queue, directory):
    queue = open_queue(serializer=OrderSerializer())
    order = Order(7, dt.date(2026, 1, 2))

    made = queue.enqueue(order)
    order.number = 8

    assert made.payload == queue.lease_one().payload == Order(7, dt.date(2026, 1, 2))
    log = next(directory.glob("*.log")).read_text()
    assert f'"serializer":"{__name__}.OrderSerializer"' in log


def test_coroutines_have_serializers_too(directory):
    async def main():
        async with AsyncQueue(directory, serializer=MsgpackSerializer()) as queue:
            await queue.enqueue(b"\x00")
            assert (await queue.lease_one()).payload == b"\x00"

    asyncio.run(main())


class Counting(OrderSerializer):
    def __init__(self):
        self.calls = 0

    def dumps(self, value):
        self.calls += 1
        return super().dumps(value)


ORDER = Order(1, dt.date(2026, 1, 2))


def test_a_serializer_runs_once_for_a_job_however_long_it_waits_for_room(open_queue):
    serializer = Counting()
    queue = open_queue(serializer=serializer, max_pending=1)
    queue.enqueue(ORDER)
    waiting = threading.Thread(target=queue.enqueue, args=(ORDER,))
    waiting.start()
    waiting.join(0.1)
    queue.lease_one().ack()
    waiting.join()

    assert serializer.calls == 2


def test_so_it_does_for_coroutines(directory):
    serializer = Counting()

    async def main():
        async with AsyncQueue(directory, serializer=serializer, max_pending=1) as queue:
            await queue.enqueue(ORDER)
            for add, value in ((queue.enqueue, ORDER), (queue.enqueue_many, [ORDER])):
                waiting = asyncio.create_task(add(value))
                await asyncio.sleep(0.1)
                await queue.ack(await queue.lease_one())
                await waiting

    asyncio.run(main())

    assert serializer.calls == 3


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"timeout": -1}, ValueError),
        ({"timeout": "1"}, TypeError),
        ({"delay": float("nan")}, ValueError),
        ({"priority": 2**15}, ValueError),
        ({"max_attempts": 0}, ValueError),
        ({"job_id": ""}, ValueError),
    ],
)
def test_bad_arguments_are_refused_before_a_serializer_runs(open_queue, options, error):
    serializer = Counting()
    queue = open_queue(serializer=serializer, max_pending=1)

    with pytest.raises(error):
        queue.enqueue(ORDER, **options)
    if "job_id" in options:
        options = {"job_ids": [options["job_id"]]}
    with pytest.raises(error):
        queue.enqueue_many([ORDER], **options)

    assert serializer.calls == 0


class _Refusing(OrderSerializer):
    def dumps(self, value):
        raise KeyError(value)


class _Texting(OrderSerializer):
    def dumps(self, value):
        return "text"


@pytest.mark.parametrize(
    ("serializer", "value", "why"),
    [
        (_Refusing(), 1, "_Refusing refuses it: 1"),
        (_Texting(), 1, "_Texting refuses it: .*bytes-like"),
        (OrderSerializer(), Order(-1, dt.date(2026, 1, 2)), "could not be made"),
        (MsgpackSerializer(), {1}, "payload"),
        (MsgpackSerializer(), b"x" * LIMIT, "payload is [0-9]+ bytes of JSON"),
    ],
    ids=["raises", "no bytes", "unreadable", "msgpack", "too long"],
)
def test_what_a_serializer_cannot_do_is_refused_before_anything_is_written(
    open_queue, directory, serializer, value, why
):
    queue = open_queue(serializer=serializer)
    before = next(directory.glob("*.log")).stat().st_size

    with pytest.raises(SerializationError, match=f"^Unsupported type.*{why}"):
        queue.enqueue(value)
    with pytest.raises(SerializationError, match=rf"{why}(.|\n)*payloads\[0\]"):
        queue.enqueue_many([value])

    assert next(directory.glob("*.log")).stat().st_size == before


class _Json(OrderSerializer):
    name = "json"


class _Nameless(OrderSerializer):
    name = ""


@pytest.mark.parametrize(
    ("serializer", "error"),
    [
        (object(), TypeError),
        ("json", TypeError),
        (_Json(), ValueError),
        (_Nameless(), ValueError),
    ],
    ids=["object", "text", "json", "nameless"],
)
def test_a_serializer_that_is_none_is_refused_before_the_store_is_made(
    tmp_path, serializer, error
):
    with pytest.raises(error, match="serializer"):
        Queue(tmp_path / "jobs", serializer=serializer)

    assert not (tmp_path / "jobs").exists()


def test_the_largest_payload_can_fail_and_be_compacted(open_queue):
    """The limit of a payload leaves room for all that a compaction keeps with it."""
    queue = open_queue(serializer=MsgpackSerializer(), max_attempts=1)
    largest = b"\x00" * (LIMIT * 3 // 4 - 100)
    job = queue.enqueue(largest)
    queue.lease_one().nack(error="x" * 1_000_000)
    for _ in range(2):
        queue.compact()

        assert queue.get(job.id).payload == largest
        assert queue.get(job.id).state is JobState.DEAD


# --- what cannot be decoded -------------------------------------------------------------


@broken
def test_an_undecodable_payload_is_shown_as_what_it_is(queue, text, error):
    good = queue.enqueue("good")
    put(queue, text, job_id="bad")

    shown = queue.get("bad").payload

    assert isinstance(shown, Undecodable)
    assert error in shown.error
    assert shown.data
    assert [job.id for job in queue.list_jobs()] == [good.id, "bad"]
    assert error in repr(queue.get("bad"))
    assert len(repr(shown)) < 300
    assert queue.enqueue("other", job_id="bad").payload == shown


@broken
def test_a_lease_buries_an_undecodable_payload_and_goes_on_to_the_next_job(
    queue, text, error
):
    bad = [put(queue, text).id for _ in range(3)]
    queue.enqueue_many(["one", "two"])
    bad.append(put(queue, text).id)

    first = queue.lease_one()
    rest = queue.lease(5)

    assert first.payload == "one"
    assert [job.payload for job in rest] == ["two"]
    letters = queue.dlq()
    assert [job.id for job in letters] == bad
    for job in letters:
        assert job.last_error.startswith("Undecodable: ")
        assert error in job.last_error
        assert isinstance(job.payload, Undecodable)
        assert job.attempts == 1


@broken
def test_a_worker_buries_an_undecodable_payload_and_goes_on(queue, text, error):
    put(queue, text, job_id="bad")
    queue.enqueue("good")
    seen = []

    stats = Worker(queue, lambda job: seen.append(job.payload), idle_timeout=0.01).run()

    assert seen == ["good"]
    assert stats == WorkerStats(leased=2, succeeded=1, failed=1, dead=1)
    (letter,) = queue.dlq()
    assert error in letter.last_error


def test_a_coroutine_that_leases_goes_on_to_the_next_job_as_well(directory):
    async def main():
        async with AsyncQueue(directory) as queue:
            with Queue(directory) as plain:
                put(plain, BROKEN[0][0])
            await queue.enqueue("good")
            assert (await queue.lease_one(wait=5)).payload == "good"
            (letter,) = await queue.dlq()
            assert isinstance(letter.payload, Undecodable)

    asyncio.run(main())


def test_the_bytes_of_an_undecodable_payload_are_all_there(open_queue):
    packed = open_queue("q", serializer=MsgpackSerializer())
    data = MsgpackSerializer().dumps({"a": 1})
    packed.enqueue({"a": 1}, job_id="a")
    plain = open_queue("q")

    assert plain.lease_one() is None

    (letter,) = plain.dlq()
    assert letter.payload == Undecodable(
        data, "it was written by the serializer msgpack, and this queue reads json"
    )
    (letter,) = packed.dlq()
    assert letter.payload == {"a": 1}
    assert packed.requeue_dead("a") == 1
    assert packed.lease_one().payload == {"a": 1}


def test_a_queue_with_a_serializer_does_not_guess_at_json(open_queue):
    open_queue("q").enqueue({"a": 1})
    queue = open_queue("q", serializer=OrderSerializer())

    assert queue.lease_one() is None

    (letter,) = queue.dlq()
    assert letter.payload.data == b'{"a":1}'
    assert "by the serializer json" in letter.payload.error


def test_whatever_a_serializer_raises_while_reading_is_kept_as_the_reason(open_queue):
    class Reading(OrderSerializer):
        def loads(self, data):
            if b"9" in data and self.broken:
                raise SystemExitLikeError
            return super().loads(data)

        broken = False

    serializer = Reading()
    queue = open_queue(serializer=serializer)
    queue.enqueue_many([Order(n, dt.date(2026, 1, 2)) for n in (9, 1)])
    serializer.broken = True

    assert queue.lease_one().payload.number == 1
    (letter,) = queue.dlq()
    assert letter.payload.data.decode("utf-16") == "9 2026-01-02"
    assert "SystemExitLikeError" in letter.last_error


def test_a_full_disk_while_burying_loses_none_of_the_leased_jobs(queue, disk, clock):
    """What was leased with it is returned; whoever gets it next buries it."""
    disk.refuses = b'"op":"dead"'
    put(queue, BROKEN[0][0], job_id="bad")
    queue.enqueue("good")

    jobs = queue.lease(2)

    assert [job.payload for job in jobs] == ["good"]
    assert queue.get("bad").state is JobState.LEASED
    disk.refuses = None
    clock.advance(31.0)
    assert [job.payload for job in queue.lease(2)] == ["good"]
    assert queue.get("bad").state is JobState.DEAD


def test_dead_letters_with_undecodable_payloads_come_back_and_can_be_chosen(queue):
    put(queue, BROKEN[0][0], job_id="bad")
    queue.enqueue("good", max_attempts=1)
    queue.lease_one().nack()

    moved = queue.requeue_dead(
        matching=lambda job: isinstance(job.payload, Undecodable)
    )

    assert moved == 1
    assert queue.get("bad").state is JobState.READY


def test_a_damaged_record_is_shown_as_undecodable_without_bytes(queue, directory):
    job = queue.enqueue("text", job_id="a")
    with next(directory.glob("*.log")).open("r+b") as file:
        file.seek(job.position + 60)
        file.write(b"????")

    assert queue.get("a").payload == Undecodable(None, "its record is damaged")
    queue.enqueue("next")
    assert queue.lease_one().payload == "next"
    assert [job.id for job in queue.dlq()] == ["a"]
