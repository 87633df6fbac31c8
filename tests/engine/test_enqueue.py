"""New jobs: one, many, with ids of their own and within a limit."""

from __future__ import annotations

import os

import pytest

from django_nobroker.engine import enqueue, history, retention
from django_nobroker.engine.capacity import NeverFits
from django_nobroker.engine.enqueue import Duplicate
from django_nobroker.engine.errors import DuplicateJobError, QueueFull
from django_nobroker.engine.record import Enqueue

from .driving import (
    TIMEOUT,
    ack,
    add,
    add_many,
    counts,
    log_of,
    nack,
    new,
    payloads,
    records,
    row,
    segments,
    take,
    take_one,
)


def place(store, jobs, **options):
    return enqueue.place(store, jobs, durable=True, timeout=TIMEOUT, **options)


def test_a_job_is_on_disk_when_enqueue_returns(store, files):
    files.forget()

    job = add(store, {"a": 1})

    names = files.names()
    assert names.index("write") < names.index("fdatasync")
    found = records(store.directory)[-1]
    assert isinstance(found, Enqueue)
    assert (found.at, found.id) == (job.at, job.id)
    assert bytes(found.payload) == b'{"a":1}'


def test_without_durability_nothing_is_synced(store, files):
    files.forget()

    add(store, durable=False)

    assert files.count("write") == 1
    assert files.count("fdatasync", "fsync") == 0


def test_a_batch_is_one_write_and_one_sync(store, files):
    files.forget()

    add_many(store, range(100))

    assert files.count("write") == 1
    assert files.count("fdatasync") == 1
    assert payloads(store) == {"ready": list(range(100))}


def test_a_plain_enqueue_does_not_touch_the_index(store, tmp_path):
    """A process that only enqueues needs none at all."""
    add(store)
    add_many(store, [1, 2])

    assert os.listdir(tmp_path / "index-one") == []


def test_a_generated_id_is_found_by_its_position(store):
    job = add(store)

    found = store.look(lambda tables: tables.find(job.id))

    assert len(job.id) == 32
    assert found is not None
    assert (found[0], found[1].id) == (job.at, job.id)


def test_generated_ids_differ_also_in_children(store):
    ids = {enqueue.random_part() for _ in range(1000)}
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, "".join(enqueue.random_part() for _ in range(20)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    text = os.read(read, 4096).decode()
    os.close(read)
    os.close(write)
    theirs = {text[n : n + 20] for n in range(0, len(text), 20)}

    assert len(ids) == 1000
    assert len(theirs) == 20
    assert not theirs & (ids | {enqueue.random_part() for _ in range(200)})


# --- given ids -----------------------------------------------------------------


@pytest.mark.parametrize("scope", ["queue", "store"])
def test_a_given_id_is_enqueued_once(store, scope):
    job = add(store, 1, job_id="invoice-7", scope=scope)

    (answer,) = place(store, [new(store, 2, job_id="invoice-7", scope=scope)])

    assert isinstance(answer, Duplicate)
    assert (answer.position, answer.row.id) == (job.at, "invoice-7")
    assert payloads(store) == {"ready": [1]}


def test_an_id_of_a_queue_may_be_used_in_another_one(store):
    add(store, 1, job_id="a", queue="one")
    add(store, 2, job_id="a", queue="two")

    assert payloads(store) == {"ready": [1, 2]}


def test_an_id_of_the_store_counts_in_every_queue(store):
    add(store, 1, job_id="a", queue="one", scope="store")

    (answer,) = place(store, [new(store, 2, job_id="a", queue="two", scope="store")])

    assert isinstance(answer, Duplicate)


def test_an_id_given_twice_in_a_batch_is_enqueued_once(store):
    jobs = [new(store, n, job_id=name) for n, name in enumerate("aba")]

    answers = place(store, jobs)

    assert [answer.id for answer in answers] == ["a", "b", "a"]
    assert answers[0] is answers[2]
    assert payloads(store) == {"ready": [0, 1]}


def test_the_id_of_a_finished_job_still_counts(store):
    add(store, 1, job_id="a")
    ack(store, take_one(store))

    (answer,) = place(store, [new(store, 2, job_id="a")])

    assert isinstance(answer, Duplicate)


def test_an_id_is_known_to_another_handle_at_once(open_store, store, clock):
    other = open_store(clock=clock, handle="two")
    add(store, 1, job_id="a")

    (answer,) = place(other, [new(other, 2, job_id="a")])

    assert isinstance(answer, Duplicate)


@pytest.mark.parametrize("name", ["\U0001f600" * 200, "x" * 200, "a b/c?", "\u00e9"])
def test_ids_of_every_length_and_script_are_found(store, name):
    job = add(store, 1, job_id=name)

    found = store.look(lambda tables: tables.find(name))

    assert found is not None
    assert found[0] == job.at


@pytest.mark.parametrize(
    "name", ["-" + "1" * 31, "+" + "1" * 31, "0_1" + "2" * 29, " " + "3" * 31, "z" * 32]
)
def test_an_id_that_only_looks_generated_is_not_found(store, name):
    add(store)

    assert store.look(lambda tables: tables.find(name)) is None


def test_a_given_id_that_looks_generated_finds_its_job(store):
    name = "f" * 32
    job = add(store, job_id=name)

    found = store.look(lambda tables: tables.find(name))

    assert found is not None
    assert found[0] == job.at


# --- the same id, another payload ---------------------------------------------------


def test_the_same_payload_again_is_answered_and_another_one_refused(store, files):
    job = add(store, {"a": 1, "b": [2]}, job_id="a")
    before = log_of(store.directory)

    (answer,) = place(store, [new(store, {"b": [2], "a": 1}, job_id="a")], alike=True)
    with pytest.raises(DuplicateJobError, match="The job a is known") as caught:
        place(
            store,
            [new(store, 1), new(store, {"a": 2}, job_id="a"), new(store, 1)],
            alike=True,
        )

    assert isinstance(answer, Duplicate)
    assert answer.position == job.at
    assert caught.value.job_id == "a"
    assert log_of(store.directory) == before


def test_twins_of_a_batch_must_be_alike_too(store):
    before = log_of(store.directory)

    with pytest.raises(DuplicateJobError):
        place(store, [new(store, n, job_id="a") for n in (1, 2)], alike=True)
    assert log_of(store.directory) == before

    answers = place(store, [new(store, 1, job_id="a") for _ in range(2)], alike=True)
    assert answers[0] is answers[1]


def test_another_payload_is_told_before_a_full_queue(store):
    place(store, [new(store, 0, job_id="a")], most={"q": 1})

    with pytest.raises(DuplicateJobError):
        place(
            store,
            [new(store, 1, job_id="a"), new(store, 2)],
            most={"q": 1},
            alike=True,
        )


def test_a_damaged_payload_counts_as_another(store):
    job = add(store, "text", job_id="a")
    answer = Duplicate(job.at, row(store, job.at))
    assert not enqueue.differs(store, new(store, "text", job_id="a"), answer)
    with segments(store.directory)[0].open("r+b") as file:
        file.seek(job.at + 60)
        file.write(b"????")

    assert enqueue.differs(store, new(store, "text", job_id="a"), answer)
    with pytest.raises(DuplicateJobError):
        place(store, [new(store, "text", job_id="a")], alike=True)


def test_a_job_that_came_while_payloads_were_compared_is_compared_as_well(
    store, monkeypatch
):
    """It goes and comes back between the look and the write."""
    add(store, 1, job_id="a")
    read = history.fingerprint
    looked = []

    def meanwhile(store, position, found):
        if not looked:
            everything = retention.Selection(queue="q", states=range(6))
            retention.purge(store, everything, by="", durable=True, timeout=TIMEOUT)
            add(store, 2, job_id="a")
        looked.append(position)
        return read(store, position, found)

    monkeypatch.setattr(history, "fingerprint", meanwhile)

    with pytest.raises(DuplicateJobError):
        place(store, [new(store, 1, job_id="a")], alike=True)

    assert len(looked) == 2
    assert payloads(store) == {"ready": [2]}


# --- a limit ------------------------------------------------------------------------


def test_a_full_queue_takes_no_more_and_nothing_is_written(store):
    for n in range(3):
        place(store, [new(store, n)], most={"q": 3})
    before = log_of(store.directory)

    with pytest.raises(QueueFull):
        place(store, [new(store, 9)], most={"q": 3})

    assert log_of(store.directory) == before


def test_ready_delayed_and_leased_jobs_count_and_finished_ones_do_not(store):
    place(store, [new(store, 0)], most={"q": 3})
    place(store, [new(store, 1, delay=60)], most={"q": 3})
    place(store, [new(store, 2)], most={"q": 3})
    job, other = take(store, 2)
    with pytest.raises(QueueFull):
        place(store, [new(store, 3)], most={"q": 3})

    ack(store, job)
    place(store, [new(store, 3)], most={"q": 3})

    nack(store, other, delay=60.0)
    with pytest.raises(QueueFull):
        place(store, [new(store, 4)], most={"q": 3})
    assert counts(store) == {"ready": 1, "delayed": 2, "done": 1}


def test_a_batch_fits_whole_or_not_at_all(store):
    place(store, [new(store, 0)], most={"q": 3})

    with pytest.raises(QueueFull):
        place(store, [new(store, n) for n in (1, 2, 3)], most={"q": 3})

    assert payloads(store) == {"ready": [0]}


def test_a_batch_that_can_never_fit_is_told_apart(store):
    with pytest.raises(NeverFits):
        place(store, [new(store, n) for n in range(4)], most={"q": 3})


def test_each_queue_has_a_limit_of_its_own(store):
    place(store, [new(store, 0, queue="one")], most={"one": 1})

    place(store, [new(store, 1, queue="two")], most={"two": 1})

    assert payloads(store) == {"ready": [0, 1]}


def test_a_known_id_is_answered_although_the_queue_is_full(store):
    place(store, [new(store, 0, job_id="a")], most={"q": 1})

    (answer,) = place(store, [new(store, 1, job_id="a")], most={"q": 1})

    assert isinstance(answer, Duplicate)


def test_nothing_to_enqueue_is_nothing(store):
    before = log_of(store.directory)

    assert list(place(store, [])) == []
    assert list(place(store, [], most={"q": 1})) == []
    assert log_of(store.directory) == before


# --- times --------------------------------------------------------------------------


def test_a_time_that_has_passed_is_at_once(store, clock):
    job = enqueue.new(
        queue="q", payload=b"1", now=clock.wall(), due=clock.wall() - 5, max_attempts=1
    )

    assert job.due is None


def test_a_job_for_later_says_when(store, clock):
    job = add(store, delay=60)

    assert job.due == clock.wall() + 60
    assert counts(store) == {"delayed": 1}
