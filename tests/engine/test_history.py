"""What happened to a job, read back from its records."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_nobroker.engine import compaction, history, settle, states
from django_nobroker.engine.retention import Retention, Terms

from .driving import (
    TIMEOUT,
    ack,
    add,
    add_many,
    flip,
    held,
    nack,
    release,
    row,
    segments,
    take,
    take_one,
)


def told(store, position):
    return [
        type(one).__name__ for one in history.backwards(store, row(store, position))
    ]


def test_every_record_of_a_job_is_told_newest_first(store):
    job = add(store)
    add(store, "another", priority=-1)
    nack(store, take_one(store))
    release(store, take_one(store))
    leased = take_one(store)
    settle.extend(store, held(leased), 99.0, timeout=TIMEOUT)
    ack(store, leased)

    assert told(store, job.at) == [
        "Ack",
        "Extend",
        "Lease",
        "Release",
        "Lease",
        "Nack",
        "Lease",
        "Enqueue",
    ]


def test_a_damaged_record_ends_the_walk(store):
    job = add(store)
    failed = take_one(store)
    nack(store, failed)
    ack(store, take_one(store))
    with segments(store.directory)[0].open("r+b") as file:
        file.seek(failed.token.position + 30)
        file.write(b"????")

    assert told(store, job.at) == ["Ack", "Lease", "Nack"]


def test_a_payload_is_read_from_the_log(store):
    job = add(store, {"a": "x" * 100_000})

    assert history.payload(store, row(store, job.at)) == (
        b'{"a":"' + b"x" * 100_000 + b'"}'
    )


def test_a_damaged_payload_is_none(store):
    job = add(store, "text")
    found = row(store, job.at)
    with segments(store.directory)[0].open("r+b") as file:
        file.seek(job.at + 60)
        file.write(b"????")

    assert history.payload(store, found) is None


def test_a_job_whose_failure_cannot_be_read_tells_none(store):
    job = add(store)

    found = row(store, job.at)
    found.error = job.at

    assert history.failure(store, found) is None


def test_a_long_chain_is_cut(store, monkeypatch):
    monkeypatch.setattr(history, "LONGEST", 3)
    job = add(store)
    leased = take_one(store)
    for n in range(5):
        settle.extend(store, held(leased), 100.0 + n, timeout=TIMEOUT)

    assert told(store, job.at) == ["Extend"] * 3


def test_the_fingerprint_of_a_forgotten_job_is_found_although_a_compaction_came_between(
    store,
):
    """Whoever enqueues its id again may have looked before the job was moved."""
    kept = Retention(queues={"q": Terms(results=0.0)})
    job = add(store, "text", job_id="a")
    ack(store, take_one(store))
    looked_at = []
    for _ in range(3):
        looked_at.append(row(store, job.at))
        compaction.compact(store, kept, timeout=TIMEOUT)
    assert row(store, job.at).state == states.FORGOTTEN

    prints = {history.fingerprint(store, job.at, one) for one in looked_at}

    assert prints == {history.print_of("", b'"text"')}


VALUES = st.recursive(
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def backwards_keys(value):
    if isinstance(value, list):
        return [backwards_keys(one) for one in value]
    if isinstance(value, dict):
        return {key: backwards_keys(value[key]) for key in reversed(value)}
    return value


@given(VALUES)
def test_a_fingerprint_is_that_of_the_value_however_it_is_spelt(value):
    spelt = json.dumps(value).encode()
    otherwise = json.dumps(backwards_keys(value), indent=1, ensure_ascii=False)

    assert history.print_of("", spelt) == history.print_of(
        "", otherwise.encode("utf-8", "surrogatepass")
    )


def test_another_value_or_kind_has_another_fingerprint():
    texts = [b"1", b"1.0", b"true", b'"1"', b"[1]", b'{"a":1}', b'{"a":2}', b"null"]
    prints = {history.print_of(kind, text) for kind in ("", "a.b") for text in texts}

    assert len(prints) == 2 * len(texts)


@pytest.mark.parametrize("text", [b"1" * 5000, b"[" * 100_000 + b"]" * 100_000, b"{"])
def test_text_that_cannot_be_read_has_a_fingerprint_of_its_own(text):
    assert history.print_of("", text) != history.print_of("", text + b" ")


# --- the payloads of several jobs -----------------------------------------------------


def test_payloads_of_several_jobs_are_those_of_each(store):
    add_many(store, [{"n": n, "text": "x" * (n * 997 % 5000)} for n in range(200)])
    add(store, "y" * 100_000)
    add(store, "z")
    rows = [job.row for job in take(store, 300)]
    rows = rows[::3] + rows[1::3] + rows[2::3]

    assert list(history.payloads(store, rows)) == [
        history.payload(store, row) for row in rows
    ]


def test_payloads_of_neighbours_are_read_at_once(store, monkeypatch):
    add_many(store, range(64))
    rows = [job.row for job in take(store, 64)]
    reads = []
    read = store.log.read
    monkeypatch.setattr(
        store.log, "read", lambda *place: reads.append(place) or read(*place)
    )

    assert list(history.payloads(store, rows)) == [b"%d" % n for n in range(64)]
    assert len(reads) == 1


def test_a_damaged_payload_among_several_is_told_and_costs_no_other(store):
    jobs = add_many(store, range(3))
    rows = [job.row for job in take(store, 3)]
    flip(store.directory, jobs[1].at + 60)

    assert list(history.payloads(store, rows)) == [b"0", None, b"2"]


def test_payloads_that_a_compaction_moved_meanwhile_are_found(store):
    add_many(store, range(5))
    rows = [job.row for job in take(store, 5)]
    compaction.compact(store, Retention(queues={}), timeout=TIMEOUT)

    assert list(history.payloads(store, rows)) == [b"%d" % n for n in range(5)]
