"""Letting records happen to the index."""

from __future__ import annotations

import zlib

from django_nobroker.engine import changes as module
from django_nobroker.engine import keys
from django_nobroker.engine.framing import Damage
from django_nobroker.engine.record import Open

from .driving import (
    ack,
    add,
    add_many,
    counts,
    everything,
    flip,
    lose_control_page,
    segments,
    take_one,
)


def test_a_record_of_a_job_that_is_not_known_is_counted_and_passed_over(
    open_store, store, clock
):
    from django_nobroker.engine.record import Ack

    add(store)
    store.run(lambda tx: tx.add([Ack(job=77, prev=77, t=1.0)]), timeout=5, durable=True)

    assert everything(store)["orphans"] == 1
    assert counts(store) == {"ready": 1}


def test_operations_of_newer_versions_are_counted_by_name(open_store, store, clock):
    add(store)
    store.close()
    clock.restart()
    at = store.end
    with segments(store.directory)[0].open("ab") as file:
        for word in (b"pause", b"resume", b"pause"):
            body = b'{"op":"%b","at":%d,"d":0}' % (word, at)
            line = b"%08x %08d %b\n" % (zlib.crc32(body, len(body)), len(body), body)
            at += len(line)
            file.write(line)

    again = open_store(clock=clock)

    assert everything(again)["unknown"] == {"pause": 2, "resume": 1}


def test_damaged_ranges_are_remembered_up_to_a_limit(store, monkeypatch):
    monkeypatch.setattr(module, "_KEPT_DAMAGE", 3)
    add(store)

    def look(transaction):
        changes = transaction.changes
        changes.note_damage([(0, 10), (10, 20), (30, 40), (50, 60), (70, 80)])
        return list(changes.meta.damage)

    found = store.run(look, timeout=5, durable=False)

    assert found == [(0, 20), (30, 40), (50, 60)]


def test_queues_and_kinds_are_numbered_as_they_appear(store):
    for queue, kind in (("b", "x"), ("a", ""), ("b", "y"), ("c", "x")):
        add(store, queue=queue, kind=kind)

    names = store.look(lambda tables: tables.names)

    assert names.queues == ["b", "a", "c"]
    assert names.kinds == ["", "x", "y"]


def test_live_jobs_are_those_still_to_be_finished(store):
    add_many(store, range(4))
    add(store, delay=60)
    ack(store, take_one(store))
    take_one(store)

    found = store.run(lambda tx: tx.changes.live_jobs(), timeout=5, durable=False)

    assert found == 4


def holed(store, directory, clock, open_store):
    """Damage a job that was never acknowledged; return the range and the next opening."""
    first = add(store, durable=False)
    second = add(store, durable=False)
    store.close()
    lose_control_page(directory)
    flip(directory, first.at + 60)
    return (first.at, second.at), open_store(clock=clock, handle="two")


def test_a_range_that_was_never_acknowledged_is_no_damage(
    store, directory, clock, open_store
):
    _, again = holed(store, directory, clock, open_store)

    assert again.recovery.holes
    assert again.look(lambda tables: tables.meta.damage) == []
    assert again.look(lambda tables: tables.meta.repair) == (clock.wall(), 0, 1)


def test_a_range_is_no_damage_any_more_once_a_recovery_has_listed_it(
    store, directory, clock, open_store
):
    """The damage may have been met in a stretch before the one with the recovery."""
    hole, again = holed(store, directory, clock, open_store)
    index = again.index.begin_changes()
    index.note_damage([Damage(*hole)])
    assert index.meta.damage == [hole]

    index.apply([Open(epoch=2, boot="", t=5.0, holes=[hole])], [1])

    assert index.meta.damage == []
    index.txn.abort()


def test_what_was_only_read_is_not_written_again(store):
    """A transaction without a change leaves no trace in the index."""
    add(store)
    store.look(lambda tables: None)
    env = store.index._environment()
    before = env.info()["last_txnid"]

    changes = store.index.begin_changes()
    (entry,) = changes.entries(keys.JOB)
    assert changes.row(keys.position_of(entry)) is not None
    changes.flush()
    changes.txn.commit()

    assert env.info()["last_txnid"] == before
