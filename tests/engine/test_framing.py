"""Records as lines of text: what is written is read back, and damage is noticed."""

from __future__ import annotations

import re
import zlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from django_nobroker.engine import framing
from django_nobroker.engine.errors import SerializationError
from django_nobroker.engine.framing import Damage
from django_nobroker.engine.record import (
    Ack,
    AnyRecord,
    Dead,
    Discard,
    Enqueue,
    Extend,
    Failure,
    Lease,
    Nack,
    Open,
    Release,
    Requeue,
    SegmentStart,
    Unknown,
)

# --- what a log may hold -------------------------------------------------------

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
moment = st.floats(min_value=0, max_value=4e9, allow_nan=False)
position = st.integers(0, 2**40)
json_value = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | text,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3)
    ),
    max_leaves=6,
)
raw = json_value.map(lambda value: Raw(msgspec.json.encode(value)))
failure = st.builds(Failure, type=text, message=text, traceback=text)
of_a_job = {"job": position, "prev": position, "t": moment}
record = st.one_of(
    st.builds(
        Enqueue,
        id=text,
        given=st.sampled_from(["", "queue", "store"]),
        queue=text,
        t=moment,
        priority=st.integers(-(2**15), 2**15 - 1),
        due=st.none() | moment,
        max=st.integers(1, 99),
        kind=text,
        payload=raw,
    ),
    st.builds(Lease, until=moment, worker=text, attempt=st.integers(1, 9), **of_a_job),
    st.builds(Extend, until=moment, **of_a_job),
    st.builds(Ack, result=raw | st.just(msgspec.UNSET), **of_a_job),
    st.builds(
        Nack,
        delay=moment,
        until=moment,
        error=failure,
        lost=st.booleans(),
        **of_a_job,
    ),
    st.builds(Dead, error=failure, reason=text, **of_a_job),
    st.builds(Release, **of_a_job),
    st.builds(Requeue, by=text, **of_a_job),
    st.builds(Discard, by=text, **of_a_job),
    st.builds(
        Open,
        epoch=st.integers(1, 99),
        boot=text,
        t=moment,
        cut=position,
        holes=st.lists(st.tuples(position, position), max_size=3),
    ),
    st.builds(
        SegmentStart,
        format=st.integers(1, 9),
        store=text,
        epoch=st.integers(1, 99),
        boot=text,
        generation=st.integers(1, 99),
        prev=position,
        last=position,
        sum=text,
    ),
)


def plain(one: AnyRecord | Unknown) -> dict[str, object]:
    text = msgspec.json.encode(one)
    return msgspec.json.decode(text, type=dict[str, object])


def job(payload: object = 1, queue: str = "q") -> Enqueue:
    return Enqueue(
        id="r" * 20,
        queue=queue,
        t=1.5,
        max=3,
        payload=Raw(msgspec.json.encode(payload)),
    )


def some_log() -> list[bytes]:
    """Return the lines of four transactions, one of them of three records."""
    lines: list[bytes] = []
    at = 0
    for group in (
        [job({"name": "Ada"})],
        [job(1), job([1, 2]), Ack(job=0, prev=0, t=2.0)],
        [Lease(job=0, prev=0, t=2.5, until=9.0, worker="w", attempt=1)],
        [Nack(job=0, prev=0, t=3.0, delay=1.0, until=9.0, error=Failure(type="E"))],
    ):
        made = framing.encode_transaction(group, at, at)
        at += sum(map(len, made))
        lines += made
    return lines


# --- there and back ------------------------------------------------------------


@given(
    groups=st.lists(st.lists(record, min_size=1, max_size=4), min_size=1, max_size=4),
    base=st.integers(0, 2**40),
    durable=st.integers(0, 2**40),
)
def test_what_is_written_is_read_back(groups, base, durable):
    lines: list[bytes] = []
    for group in groups:
        at = base + sum(map(len, lines))
        lines += framing.encode_transaction(group, at, durable)

    decoded = framing.decode_stretch(b"".join(lines), base, final=True)

    written = [plain(one) for group in groups for one in group]
    assert [plain(one) for one in decoded.records] == written
    assert decoded.damage == []
    assert decoded.sizes == [len(line) for line in lines]
    assert decoded.end == base + sum(map(len, lines))
    assert decoded.sum == lines[-1][:8].decode()


@given(group=st.lists(record, min_size=2, max_size=5), base=st.integers(0, 2**40))
def test_members_of_a_transaction_count_down_and_follow_each_other(group, base):
    lines = framing.encode_transaction(group, base, 7)

    assert [one.left for one in group] == list(reversed(range(len(group))))
    assert {one.of for one in group} == {len(group)}
    assert {one.d for one in group} == {7}
    offsets = [base + sum(map(len, lines[:n])) for n in range(len(lines))]
    assert [one.at for one in group] == offsets


@given(one=record)
def test_a_record_is_one_line_that_text_tools_understand(one):
    (line,) = framing.encode_transaction([one], 0, 0)

    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    match = re.fullmatch(rb"([0-9a-f]{8}) ([0-9]{8}) (\{.*\})\n", line)
    assert match is not None
    assert int(match[2]) == len(match[3])
    assert int(match[1], 16) == zlib.crc32(match[3], len(match[3]))


def test_a_payload_with_line_breaks_of_its_own_is_read_by_its_length():
    pretty = Enqueue(id="a", queue="q", t=1.0, max=1, payload=Raw(b'{\n "a":\n 1\n}'))
    lines = framing.encode_transaction([pretty, job(2), job(3)], 0, 0)

    decoded = framing.decode_stretch(b"".join(lines), 0, final=True)

    assert (len(decoded.records), decoded.damage) == (3, [])


def test_a_generated_id_begins_with_the_position():
    """So that the index needs no entry of its own to find the job."""
    one = job()

    framing.encode_transaction([one], 0xABC, 0)

    assert one.id == "000000000abc" + "r" * 20


def test_placing_a_record_again_gives_it_the_id_of_its_new_place():
    """A round of transactions that did not fit is written again, one by one."""
    one = job()
    framing.encode_transaction([one], 0xABC, 0)

    framing.encode_transaction([one], 0xDEF, 0)

    assert one.id == "000000000def" + "r" * 20


def test_a_record_too_long_for_its_header_is_refused_before_it_is_written():
    """Nine digits of length would shift the header, and nobody could read it."""
    huge = Enqueue(
        id="a", queue="q", t=1.0, max=1, payload=Raw(b'"' + b"x" * 10**8 + b'"')
    )

    with pytest.raises(SerializationError, match="100000"):
        framing.encode_transaction([huge], 0, 0)


# --- damage -----------------------------------------------------------------------


def test_every_single_flipped_bit_is_noticed_and_costs_at_most_one_record():
    lines = some_log()
    data = b"".join(lines)
    whole = [plain(one) for one in framing.decode_stretch(data, 0, final=True).records]
    starts = [sum(map(len, lines[:n])) for n in range(len(lines) + 1)]

    for byte in range(len(data)):
        hit = next(n for n in range(len(lines)) if starts[n + 1] > byte)
        for bit in range(8):
            damaged = bytearray(data)
            damaged[byte] ^= 1 << bit

            decoded = framing.decode_stretch(bytes(damaged), 0, final=True)

            read = [plain(one) for one in decoded.records]
            place = f"byte {byte}, bit {bit}"
            if byte == starts[hit + 1] - 1:
                # Only the newline: the length says where the record ends.
                assert read in (whole, whole[:hit] + whole[hit + 1 :]), place
            else:
                assert read == whole[:hit] + whole[hit + 1 :], place
            assert decoded.damage, place
            assert all(
                starts[hit] <= start < end <= starts[hit + 1]
                for start, end in decoded.damage
            ), place
            assert decoded.end == len(data), place


def test_a_damaged_newline_costs_no_other_record():
    lines = some_log()
    for hit in range(len(lines)):
        damaged = [*lines]
        damaged[hit] = damaged[hit][:-1] + b"}"

        decoded = framing.decode_stretch(b"".join(damaged), 0, final=True)

        assert len(decoded.records) >= len(lines) - 1
        assert len(decoded.damage) == 1


def test_a_checksum_in_capital_letters_is_damage():
    """As a number it would be the same one; a flipped bit makes ``a`` an ``A``."""
    at = 0
    for n in range(100):
        (line,) = framing.encode_transaction([job(n)], at, 0)
        if line[:8].upper() != line[:8]:
            break
    changed = line[:8].upper() + line[8:]

    decoded = framing.decode_stretch(changed, 0, final=True)

    assert decoded.records == []
    assert decoded.damage == [Damage(0, len(line))]


def test_a_record_at_another_place_than_its_own_is_damage():
    """A block that the disk wrote twice must not bring old records back."""
    lines = some_log()
    data = b"".join(lines)

    decoded = framing.decode_stretch(data + lines[0], 0, final=True)

    assert len(decoded.records) == len(lines)
    assert decoded.damage == [Damage(len(data), len(data) + len(lines[0]))]


@given(noise=st.binary(max_size=200), cut=st.integers(0, 5))
def test_noise_between_records_costs_none_of_them(noise, cut):
    lines = some_log()
    before, after = lines[:cut], lines[cut:]
    at = sum(map(len, before)) + len(noise)
    moved = framing.encode_transaction([job("after")], at, 0)

    decoded = framing.decode_stretch(b"".join([*before, noise, *moved]), 0, final=True)

    assert len(after) == len(lines) - cut
    assert len(decoded.records) == cut + 1
    assert decoded.end == at + len(moved[0])


@settings(max_examples=300)
@given(
    data=st.binary(max_size=300)
    | st.text("0123456789abcdef {}\n", max_size=99).map(str.encode)
)
def test_noise_is_never_taken_for_a_record(data):
    decoded = framing.decode_stretch(data, 0, final=True)

    assert decoded.records == []
    assert decoded.damage == ([Damage(0, len(data))] if data else [])


def test_text_in_a_payload_that_looks_like_a_record_is_not_one():
    inner = framing.encode_transaction([job("inner")], 60, 0)[0].decode()
    (line,) = framing.encode_transaction([job(inner)], 0, 0)
    damaged = b"x" + line[1:]

    decoded = framing.decode_stretch(damaged, 0, final=True)

    assert decoded.records == []


def test_a_record_that_is_cut_off_is_left_for_the_next_stretch():
    data = b"".join(some_log())
    for cut in range(len(data)):
        first = framing.decode_stretch(data[:cut], 0, final=False)
        second = framing.decode_stretch(data[first.end :], first.end, final=True)

        assert first.damage == second.damage == []
        assert len(first.records) + len(second.records) == len(some_log())


def test_what_is_left_over_at_the_end_of_the_log_is_damage():
    data = b"".join(some_log())[:-1]

    decoded = framing.decode_stretch(data, 0, final=True)

    assert [damage.end for damage in decoded.damage] == [len(data)]
    assert len(decoded.records) == len(some_log()) - 1


# --- newer versions ------------------------------------------------------------------


def test_an_operation_of_a_newer_version_is_whole_and_unknown():
    body = b'{"op":"pause","at":0,"d":0,"queue":"q"}'
    line = b"%08x %08d %b\n" % (zlib.crc32(body, len(body)), len(body), body)

    decoded = framing.decode_stretch(line, 0, final=True)

    assert decoded.damage == []
    assert decoded.records == [Unknown(op="pause", at=0, d=0)]


def test_a_field_of_a_newer_version_is_passed_over():
    body = b'{"op":"release","at":0,"d":0,"job":5,"prev":5,"t":1.0,"why":"new"}'
    line = b"%08x %08d %b\n" % (zlib.crc32(body, len(body)), len(body), body)

    (one,) = framing.decode_stretch(line, 0, final=True).records

    assert isinstance(one, Release)
    assert one.job == 5


@pytest.mark.parametrize(
    "body", [b"{}", b'{"op":1,"at":0}', b'["op"]', b'{"op":"ack"', b"\xff{}", b"null"]
)
def test_a_line_with_a_right_checksum_that_is_no_record_is_damage(body):
    line = b"%08x %08d %b\n" % (zlib.crc32(body, len(body)), len(body), body)

    decoded = framing.decode_stretch(line, 0, final=True)

    assert decoded.records == []
    assert decoded.damage == [Damage(0, len(line))]
