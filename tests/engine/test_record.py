"""The operations: their names are part of the format and stay what they are."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from django_nobroker.engine import framing, record
from django_nobroker.engine.record import Ack, Enqueue, Failure, Nack, Open

NAMES = {
    record.SegmentStart: "segment",
    record.Open: "open",
    record.Enqueue: "enqueue",
    record.Lease: "lease",
    record.Extend: "extend",
    record.Ack: "ack",
    record.Nack: "nack",
    record.Dead: "dead",
    record.Release: "release",
    record.Requeue: "requeue",
    record.Discard: "discard",
}


@pytest.mark.parametrize(("kind", "name"), NAMES.items(), ids=NAMES.values())
def test_each_operation_has_its_plain_word(kind, name):
    assert kind.__struct_config__.tag == name


def test_what_has_its_usual_value_is_not_written():
    """Most records are small; a job without extras names none of them."""
    one = Enqueue(id="a", queue="q", t=1.0, max=3, payload=Raw(b"[1]"))

    line = framing.encode_transaction([one], 0, 0)[0]

    body = msgspec.json.decode(line[framing.HEADER :])
    assert set(body) == {"op", "at", "d", "id", "queue", "t", "max", "payload"}


def test_an_acknowledgement_tells_no_result_from_a_result_that_is_null():
    without = Ack(job=1, prev=1, t=1.0)
    with_null = Ack(job=1, prev=1, t=1.0, result=Raw(b"null"))

    first, second = framing.encode_transaction([without, with_null], 0, 0)
    assert b"result" not in first
    assert b'"result":null' in second


def test_a_records_lists_are_its_own():
    first = Open(epoch=1, boot="", t=1.0)
    second = Open(epoch=1, boot="", t=1.0)

    first.holes.append((1, 2))

    assert second.holes == []


def test_a_failure_is_text_throughout():
    one = Nack(
        job=1, prev=1, t=1.0, delay=1.0, until=2.0, error=Failure(message="\x00\u2028")
    )

    found = framing.decode_at(framing.encode_transaction([one], 0, 0)[0], 0, 0)

    assert found is not None
    assert isinstance(found[0], Nack)
    assert found[0].error.message == "\x00\u2028"
