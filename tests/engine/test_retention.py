"""Which jobs leave the store, and when."""

from __future__ import annotations

import pytest

from django_nobroker.engine import retention, states, verification
from django_nobroker.engine.control import OWED
from django_nobroker.engine.errors import JobNotFoundError
from django_nobroker.engine.retention import Retention, Selection, Terms

from .driving import (
    TIMEOUT,
    ack,
    add,
    add_many,
    counts,
    everything,
    fill,
    kill,
    payloads,
    records,
    take,
    take_one,
)

ALL = range(states.STATES)


def purge(store, chosen=ALL, **options):
    values = {"queue": "q", **options}
    return retention.purge(
        store,
        Selection(states=list(chosen), **values),
        by=values.pop("by", ""),
        durable=True,
        timeout=TIMEOUT,
    )


def expire(store, *, least=0.0, **terms):
    kept = Retention(queues={"q": Terms(**terms)}, least=least)
    return retention.expire(store, kept, timeout=TIMEOUT)


def test_everything_goes_leased_jobs_included(store):
    fill(store)
    there = len(everything(store)["rows"])
    leased = take_one(store)

    assert purge(store) == there

    found = everything(store)
    assert (found["rows"], found["ids"], found["orders"]) == ({}, {}, set())
    assert counts(store) == {}
    assert found["live"] == 0
    with pytest.raises(JobNotFoundError):
        ack(store, leased)
    assert verification.verify(store).ok


@pytest.mark.parametrize("state", range(states.DISCARDED))
def test_only_those_of_the_states_go(store, state):
    fill(store)
    before = everything(store)["rows"]

    gone = purge(store, [state])

    assert gone == sum(one["state"] == state for one in before.values()) > 0
    assert everything(store)["rows"] == {
        at: one for at, one in before.items() if one["state"] != state
    }


def test_those_of_other_queues_stay(store):
    add(store, "ours")
    add(store, "theirs", queue="other")

    assert purge(store) == 1
    assert purge(store, queue="unheard of") == 0

    assert payloads(store) == {"ready": ["theirs"]}
    assert purge(store, queue=None) == 1


def test_the_age_of_an_ended_job_counts_from_its_end(store, clock):
    add_many(store, ["old", "young", "waiting"])
    first, second = take(store, 2)
    ack(store, first)
    clock.advance(10.0)
    ack(store, second)
    now = clock.wall()

    assert purge(store, [states.DONE], until=now - 10.0) == 0
    assert purge(store, [states.DONE], until=now - 9.0) == 1
    assert payloads(store) == {"done": ["young"], "ready": ["waiting"]}


def test_the_age_of_a_waiting_job_counts_from_its_enqueue(store, clock):
    add(store, "old")
    clock.advance(10.0)
    add(store, "young")

    assert purge(store, until=clock.wall() - 5.0) == 1

    assert payloads(store) == {"ready": ["young"]}


def test_the_ids_of_purged_jobs_are_free_again(store):
    add(store, "first", job_id="mine", scope="queue")

    purge(store)

    add(store, "second", job_id="mine", scope="queue")
    assert payloads(store) == {"ready": ["second"]}


def test_room_kept_for_purged_jobs_is_given_back(store):
    add_many(store, range(5))
    ack(store, take_one(store))
    take_one(store)
    before = store.control.words[OWED]

    purge(store)

    assert store.control.words[OWED] == before - 4


def test_it_goes_in_slices(store, monkeypatch):
    monkeypatch.setattr(retention, "SLICE", 7)
    add_many(store, range(30))

    assert purge(store) == 30

    written = [one for one in records(store.directory) if type(one).__name__ == "Purge"]
    assert [len(one.jobs) for one in written] == [7, 7, 7, 7, 2]


def test_a_job_that_changed_meanwhile_is_left(store):
    add_many(store, ["a", "b"])
    positions = sorted(everything(store)["rows"])
    take_one(store)

    gone = retention.purge_slice(
        store,
        positions,
        Selection(queue="q", states=[states.READY]),
        durable=True,
        timeout=TIMEOUT,
    )

    assert gone == 1
    assert payloads(store) == {"leased": ["a"]}


def test_who_purged_stands_in_the_log(store):
    add(store)
    retention.purge(
        store,
        Selection(queue="q", states=list(ALL)),
        by="ann",
        durable=True,
        timeout=TIMEOUT,
    )

    assert records(store.directory)[-1].by == "ann"


def test_purging_nothing_writes_nothing(store):
    end = store.end

    assert purge(store) == 0

    assert store.end == end


# --- by time ----------------------------------------------------------------


def test_ended_jobs_go_when_their_time_is_over(store, clock):
    add_many(store, ["done", "dead", "waiting"])
    ack(store, take_one(store))
    kill(store)
    clock.advance(50.0)

    assert expire(store, results=60.0, dead=60.0) == 0
    assert expire(store, results=40.0, dead=None) == 1
    assert expire(store, results=0.0, dead=None) == 0
    assert payloads(store) == {"dead": ["dead"], "ready": ["waiting"]}
    assert expire(store, dead=40.0) == 1
    assert payloads(store) == {"ready": ["waiting"]}


def test_no_time_is_for_ever(store, clock):
    add(store)
    ack(store, take_one(store))
    clock.advance(1e9)

    assert expire(store, results=None) == 0


def test_at_least_so_long_every_ended_job_stays(store, clock):
    add(store)
    ack(store, take_one(store))

    assert expire(store, results=0.0, least=60.0) == 0
    clock.advance(61.0)
    assert expire(store, results=0.0, least=60.0) == 1


def test_of_a_job_whose_id_blocks_only_the_id_stays(store, clock):
    add(store, job_id="given", scope="queue")
    add(store, "generated")
    for job in take(store, 2):
        ack(store, job)

    assert expire(store, ids=100.0) == 2

    assert counts(store) == {"forgotten": 1}
    assert expire(store, ids=100.0) == 0
    clock.advance(101.0)
    assert expire(store, ids=100.0) == 0  # nothing that showed
    assert everything(store)["rows"] == {}
    assert everything(store)["ids"] == {}


def test_an_id_may_block_for_ever(store, clock):
    add(store, job_id="given", scope="store")
    ack(store, take_one(store))
    clock.advance(1e9)

    assert expire(store, ids=None) == 1

    assert counts(store) == {"forgotten": 1}


def test_it_stops_when_asked(store, monkeypatch):
    monkeypatch.setattr(retention, "SLICE", 2)
    add_many(store, range(6))
    for job in take(store, 6):
        ack(store, job)
    asked = iter([False, True])

    gone = retention.expire(
        store,
        Retention(queues={"q": Terms()}),
        timeout=TIMEOUT,
        stopped=lambda: next(asked, True),
    )

    assert gone == 2
    assert counts(store) == {"done": 4}
