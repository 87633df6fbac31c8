"""Figures of a store: right, from one moment, and without touching anything."""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from django_nobroker.engine import diagnostics
from django_nobroker.engine.diagnostics import Policy, StateCounts
from django_nobroker.engine.roster import Membership, WorkerEntry

from .driving import ack, add, add_many, kill, lose_control_page, snapshot, take_one

POLICY = Policy(fsync=True, max_pending=None, lock_timeout=10.0)


def diagnose(store, queue="q", **policy):
    return diagnostics.diagnose(store, queue, dataclasses.replace(POLICY, **policy))


def test_a_new_store_has_nothing_to_count(store):
    found = diagnose(store)

    assert found.version == diagnostics.VERSION == 1
    assert found.observed_at == store.clock.wall()
    assert found.counts == found.store_counts == StateCounts()
    assert found.queues == ()
    assert found.oldest_waiting_for is None
    assert found.last_repair is None
    assert found.leases.oldest_expired_for is None


def test_every_state_is_counted_for_the_queue_and_for_the_store(store):
    add_many(store, range(3))
    add(store, delay=60.0)
    ack(store, take_one(store))
    kill(store)
    take_one(store)
    add(store, queue="other")

    found = diagnose(store)

    assert found.counts == StateCounts(delayed=1, leased=1, done=1, dead=1, total=4)
    assert found.store_counts == StateCounts(
        ready=1, delayed=1, leased=1, done=1, dead=1, total=5
    )
    assert [one.queue for one in found.queues] == ["other", "q"]
    assert found.queues[0].counts == StateCounts(ready=1, total=1)


def test_a_look_never_sees_half_of_a_transaction(store, open_store, clock):
    """Counts, totals and the positions they are of come from one moment."""
    looker = open_store(clock=clock, handle="two", read_only=True)

    def write():
        for _ in range(40):
            add_many(store, range(7), durable=False)

    with ThreadPoolExecutor(2) as threads:
        writers = [threads.submit(write) for _ in range(2)]
        seen = []
        while not all(one.done() for one in writers):
            seen.append(diagnose(looker))
    for writer in writers:
        writer.result()
    seen.append(diagnose(looker))

    for found in seen:
        assert found.counts.total % 7 == 0
        assert found.counts.ready == found.counts.total == found.totals.enqueued
        assert found.capacity.pending == found.store_counts.total == found.counts.total
    assert seen[-1].counts.total == 560


def test_the_age_is_that_of_the_job_that_is_due_for_longest(store, clock):
    add(store, delay=1000.0)
    add(store, priority=-5)
    clock.advance(30.0)
    add(store, priority=5)
    clock.advance(12.0)

    assert diagnose(store).oldest_waiting_for == 42.0


def test_a_job_that_waits_for_its_time_has_no_age_yet(store):
    add(store, delay=1000.0)

    assert diagnose(store).oldest_waiting_for is None


def test_no_age_is_below_zero_when_the_wall_clock_is_set_back(store, clock):
    add(store)
    clock.step_wall(-3600)

    assert diagnose(store).oldest_waiting_for == 0.0


def test_a_lease_that_has_run_out_is_told_apart_and_not_taken_back(store, clock):
    add_many(store, range(2))
    take_one(store, seconds=10.0)
    clock.advance(5.0)
    take_one(store, seconds=100.0)
    clock.advance(12.0)
    end = store.end

    found = diagnose(store)

    assert dataclasses.astuple(found.leases) == (1, 1, 7.0)
    assert (found.counts.ready, found.counts.leased) == (1, 1)
    assert store.end == end


def test_another_queue_s_lease_is_not_this_one_s(store, clock):
    add(store, queue="other")
    take_one(store, seconds=10.0)
    clock.advance(11.0)
    add(store)

    assert dataclasses.astuple(diagnose(store).leases) == (0, 0, None)


def test_what_the_opener_knows_is_told_as_it_is(store):
    add_many(store, range(2))

    found = diagnose(store, fsync=False, max_pending=7, lock_timeout=2.5)

    assert (found.capacity.max_pending, found.capacity.pending) == (7, 2)
    assert found.durability.fsync is False
    assert found.lock_timeout == 2.5


def test_what_is_not_on_the_disk_yet_shows_in_the_durable_position(store):
    add(store)
    assert diagnose(store).durability.durable == diagnose(store).durability.end

    add(store, durable=False)

    found = diagnose(store).durability
    assert found.durable is not None
    assert found.durable < found.end == store.end


def test_a_store_whose_sync_failed_says_so(store):
    assert not diagnose(store).durability.failed
    from django_nobroker.engine.control import FAILED

    store.control.words[FAILED] = 1

    assert diagnose(store).durability.failed


def test_the_sizes_are_those_of_the_files(store, directory):
    add_many(store, range(100))

    sizes = diagnose(store).sizes

    logs = list(Path(directory).glob("*.log"))
    assert sizes.log_bytes == sum(path.stat().st_size for path in logs)
    assert sizes.segments == len(logs) == 1
    assert sizes.index_bytes > 0
    assert (sizes.set_aside_bytes, sizes.set_aside_files) == (0, 0)


def test_the_last_repair_is_told_whoever_made_it(store, directory, open_store, clock):
    add(store)
    store.close()
    lose_control_page(directory)
    (path,) = Path(directory).glob("*.log")
    with path.open("ab") as log:
        log.write(b"torn")
    clock.advance(100.0)
    open_store(clock=clock).close()
    repaired_at = clock.wall()
    clock.advance(100.0)

    found = diagnose(open_store(clock=clock, handle="two"))

    assert dataclasses.astuple(found.last_repair) == (repaired_at, 4, 0)
    assert (found.sizes.set_aside_bytes, found.sizes.set_aside_files) == (4, 1)


def test_damage_is_told_with_its_range(store, directory, open_store):
    first = add(store, "x" * 100)
    second = add(store)
    store.close()
    (path,) = Path(directory).glob("*.log")
    data = bytearray(path.read_bytes())
    data[first.at + 60] ^= 1
    path.write_bytes(data)

    found = diagnose(open_store(handle="two"))

    assert found.trouble.damage == ((first.at, second.at),)


def test_workers_are_counted_with_their_threads(store, files, clock):
    members = [
        Membership(
            store.directory,
            WorkerEntry(id=f"w{n}", queues=queues, concurrency=n),
            files,
            store.access,
            clock,
        )
        for n, queues in enumerate([("q",), ("p",), ()])
    ]

    assert dataclasses.astuple(diagnose(store).workers) == (3, 3, 2)
    for member in members:
        member.leave()


def test_looking_needs_permission_to_read_only_and_changes_no_file(
    store, directory, open_store
):
    add_many(store, range(3))
    store.close()
    before = snapshot(directory)

    found = diagnose(open_store(read_only=True, handle="two"))

    assert found.counts.ready == 3
    assert found.sizes.torn_bytes == 0
    assert snapshot(directory) == before


def test_a_torn_end_is_measured_where_nobody_repairs_it(store, directory, open_store):
    add(store)
    store.close()
    lose_control_page(directory)
    (path,) = Path(directory).glob("*.log")
    with path.open("ab") as log:
        log.write(b"torn")

    found = diagnose(open_store(read_only=True, handle="two"))

    assert found.sizes.torn_bytes == 4
    assert found.durability.durable is None


def test_everything_is_json_and_nothing_names_a_place_on_the_disk(store, directory):
    add(store)
    kill(store)

    plain = diagnose(store, max_pending=5).to_dict()

    text = json.dumps(plain, allow_nan=False)
    assert json.loads(text) == plain
    assert str(Path(directory).parent) not in text
    assert plain["version"] == 1
    assert plain["counts"]["dead"] == 1


def test_a_look_cannot_be_changed_afterwards(store):
    found = diagnose(store)

    with pytest.raises(dataclasses.FrozenInstanceError):
        found.version = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.counts.ready = 2
