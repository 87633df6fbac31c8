"""What happened to a job, read back from its records."""

from __future__ import annotations

from django_nobroker.engine import history, settle

from .driving import TIMEOUT, ack, add, held, nack, release, row, segments, take_one


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
