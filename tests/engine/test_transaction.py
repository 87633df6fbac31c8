"""What a decision sees and does while the store is locked."""

from __future__ import annotations

import errno

import pytest

from django_nobroker.engine.control import DURABLE, END
from django_nobroker.engine.errors import StorageError
from django_nobroker.engine.record import Discard
from tests.faults.files import fails

from .driving import TIMEOUT, add, counts, everything, log_of, new, records


def run(store, decide, *, durable=False):
    return store.run(decide, timeout=TIMEOUT, durable=durable)


def test_a_decision_sees_the_ends_of_the_log(store):
    add(store)
    add(store, durable=False)

    seen = run(store, lambda tx: (tx.start, tx.position, tx.durable, tx.epoch))

    words = store.control.words
    assert seen == (words[END], words[END], words[DURABLE], 1)


def test_positions_are_final_as_soon_as_records_are_added(store):
    def decide(transaction):
        first, second = new(store, 1), new(store, 2)
        transaction.add([first])
        transaction.add([second])
        return first, second, transaction.last, transaction.position

    first, second, last, position = run(store, decide)

    assert [one.at for one in records(store.directory)[-2:]] == [first.at, second.at]
    assert (last, position) == (second.at, store.end)
    assert first.of == second.of == 0


def test_a_decision_sees_its_own_records_in_the_index(store):
    def decide(transaction):
        before = new(store, 1)
        transaction.add([before])
        found = transaction.changes.row(before.at)
        after = new(store, 2)
        transaction.add([after])
        return found, transaction.changes.row(after.at)

    found, other = run(store, decide)

    assert found is not None
    assert other is not None
    assert counts(store) == {"ready": 2}


def test_a_decision_that_only_looks_writes_nothing(store):
    add(store)
    before = log_of(store.directory)

    assert run(store, lambda tx: tx.changes.counts(0))[0] == 1

    assert log_of(store.directory) == before


def test_what_was_applied_is_taken_back_when_the_write_is_refused(store, files):
    job = add(store)
    counts(store)
    before = everything(store)
    files.on("write", fails(errno.ENOSPC))

    def decide(transaction):
        row = transaction.changes.row(job.at)
        transaction.add([Discard(job=job.at, prev=row.last, t=1.0)])

    with pytest.raises(StorageError):
        run(store, decide)

    assert everything(store) == before


def test_an_index_that_could_not_be_caught_up_is_not_marked_as_whole(store, files):
    """Otherwise jobs would be missing from it for ever."""
    add(store, "seen")
    counts(store)
    add(store, "not seen yet")
    files.on("pread", fails(errno.EIO))

    with pytest.raises(StorageError):
        run(store, lambda tx: tx.changes)

    assert counts(store) == {"ready": 2}
