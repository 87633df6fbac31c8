"""The one write path: where a write begins, what is adopted or cut, what a failure leaves."""

from __future__ import annotations

import errno
import os
import shutil
from itertools import chain, pairwise
from pathlib import Path

import lmdb
import pytest

from django_nobroker.engine import deadletters, framing
from django_nobroker.engine.changes import Changes
from django_nobroker.engine.control import END
from django_nobroker.engine.errors import (
    NobrokerError,
    StorageError,
    StoreFailedError,
)
from django_nobroker.engine.record import SegmentStart
from tests.faults.files import (
    SYNCS,
    Killed,
    fails,
    raises_after,
    writes_short,
)

from .driving import (
    TIMEOUT,
    ack,
    add,
    add_many,
    counts,
    everything,
    fill,
    log_of,
    lose_control_page,
    nack,
    new,
    payloads,
    records,
    segments,
    snapshot,
    take,
    take_one,
)


def append_raw(store, data):
    with segments(store.directory)[-1].open("ab") as file:
        file.write(data)


def lines_for(store, *payloads_):
    """Return the lines of one transaction that fits at the end of the log."""
    jobs = [new(store, value) for value in payloads_]
    return framing.encode_transaction(jobs, store.end, 0)


def test_what_was_written_is_never_touched_again(store, clock):
    seen = b""
    for _ in range(3):
        fill(store)
        clock.advance(31)
        take(store, 3)
        deadletters.requeue(
            store,
            deadletters.dead_positions(store, "q"),
            by="",
            durable=True,
            timeout=TIMEOUT,
        )
        log = log_of(store.directory)
        assert log.startswith(seen)
        seen = log


# --- what stands behind the published end ------------------------------------------


def test_a_whole_transaction_that_was_not_published_is_adopted(store):
    """Its writer died between the write and the publishing."""
    append_raw(store, b"".join(lines_for(store, "a", "b", "c")))

    add(store, "d")

    assert payloads(store) == {"ready": ["a", "b", "c", "d"]}
    assert not Path(store.directory, "set-aside").exists()


@pytest.mark.parametrize("missing", [1, 2])
def test_an_unfinished_transaction_is_set_aside_and_cut(store, missing):
    end = store.end
    lines = lines_for(store, "a", "b", "c")
    rest = b"".join(lines[:-missing])
    append_raw(store, rest)

    add(store, "d")

    assert payloads(store) == {"ready": ["d"]}
    (kept,) = Path(store.directory, "set-aside").iterdir()
    assert kept.name == f"{end:020d}-0.torn"
    assert kept.read_bytes() == rest


def test_torn_bytes_behind_a_whole_transaction_are_cut_and_the_rest_is_adopted(store):
    whole = b"".join(lines_for(store, "a", "b"))
    append_raw(store, whole + b"8665cdb8 000")

    add(store, "c")

    assert payloads(store) == {"ready": ["a", "b", "c"]}
    (kept,) = Path(store.directory, "set-aside").iterdir()
    assert kept.read_bytes() == b"8665cdb8 000"


def test_what_follows_damage_is_never_adopted(store):
    """Only what its writer would have published next may be: an unbroken run."""
    lines = lines_for(store, "a")
    more = framing.encode_transaction([new(store, "b")], store.end + len(lines[0]), 0)
    append_raw(store, b"?" * len(lines[0]) + more[0])

    add(store, "c")

    assert payloads(store) == {"ready": ["c"]}


@pytest.mark.parametrize("size", range(0, 500, 37))
def test_any_rest_of_a_write_is_settled(store, size):
    data = b"".join(lines_for(store, *"abc"))[:size]
    append_raw(store, data)

    add(store, "d")

    assert payloads(store)["ready"][-1] == "d"
    assert framing.decode_stretch(log_of(store.directory), 0, final=True).damage == []


def test_an_index_takes_adopted_jobs_in(store):
    add(store, "before")
    assert counts(store) == {"ready": 1}
    append_raw(store, b"".join(lines_for(store, "adopted")))

    add(store, "after")

    assert counts(store) == {"ready": 3}
    assert len(take(store, 5)) == 3


def test_a_log_that_got_shorter_is_an_error_and_nothing_is_written(store):
    add(store, "a")
    os.truncate(segments(store.directory)[0], store.end - 10)
    before = snapshot(store.directory)

    with pytest.raises(StorageError, match="was published"):
        add(store, "b")

    assert snapshot(store.directory) == before


# --- rolling ---------------------------------------------------------------------------


def test_a_full_segment_is_followed_by_another(open_store, directory, clock):
    store = open_store(clock=clock, segment_size=700)
    for n in range(30):
        add(store, n)

    paths = segments(directory)
    assert len(paths) > 4
    position = 0
    for path in paths:
        assert int(path.stem) == position
        position += path.stat().st_size
    starts = [one for one in records(directory) if isinstance(one, SegmentStart)]
    assert [one.at for one in starts] == [int(path.stem) for path in paths]
    assert [one.prev for one in starts] == [-1, *[one.at for one in starts[:-1]]]
    assert payloads(store) == {"ready": list(range(30))}


def test_a_segment_names_the_last_record_before_it(open_store, directory, clock):
    store = open_store(clock=clock, segment_size=700)
    for n in range(12):
        add(store, n)

    found = records(directory)
    data = log_of(directory)
    for before, one in pairwise(found):
        if isinstance(one, SegmentStart):
            assert one.last == before.at
            assert one.sum.encode() == data[before.at : before.at + 8]


def test_a_batch_is_never_split_over_segments(open_store, directory, clock):
    store = open_store(clock=clock, segment_size=700)
    for start in range(0, 60, 20):
        add_many(store, range(start, start + 20))

    for path in segments(directory):
        whole = framing.decode_stretch(path.read_bytes(), int(path.stem), final=True)
        assert whole.damage == []
        open_groups = sum(one.left for one in whole.records if one.of)
        assert whole.records[-1].left == 0
        assert open_groups % 190 == 0  # 19 + 18 + ... + 0, in each whole batch


def test_handles_follow_each_other_into_new_segments(open_store, directory, clock):
    first = open_store(clock=clock, segment_size=700)
    second = open_store(clock=clock, segment_size=700, handle="two")
    for n in range(0, 40, 2):
        add(first, n)
        add(second, n + 1)

    assert payloads(first) == payloads(second) == {"ready": list(range(40))}
    first.close()
    second.close()
    again = open_store(clock=clock, handle="three", segment_size=700)
    assert payloads(again) == {"ready": list(range(40))}
    assert not again.recovery.repaired


def test_a_new_segment_is_durable_with_its_name(open_store, directory, clock, files):
    store = open_store(clock=clock, segment_size=700, vfs=files)
    while len(segments(directory)) == 1:
        files.forget()
        add(store)
    assert files.count("fdatasync") == 1  # the old segment was durable already
    assert files.count("fsync") == 1  # the directory

    while len(segments(directory)) == 2:
        files.forget()
        add(store, durable=False)
    add(store)
    assert files.count("fdatasync") == 2  # the old segment and the new one
    assert files.count("fsync") == 1


def test_dying_at_any_call_while_a_segment_begins_loses_nothing(
    open_store, tmp_path, clock, files
):
    def nearly_full(name):
        store = open_store(
            str(tmp_path / name), clock=clock, vfs=files, segment_size=700, handle=name
        )
        payload = 0
        while segments(store.directory)[-1].stat().st_size < 700:
            add(store, payload)
            payload += 1
        files.forget()
        return store, list(range(payload))

    store, _ = nearly_full("dry")
    add(store, "new")
    calls = files.names()
    assert files.count("open") >= 3
    assert len(segments(store.directory)) == 2
    for number, name in enumerate(calls):
        if name == "close":
            continue
        store, before = nearly_full(f"run{number}")
        files.at(number, raises_after(Killed()))
        with pytest.raises(Killed):
            add(store, "new")
        store.close()
        files.forget()
        for handle in ("same", "next"):
            again = open_store(store.directory, clock=clock, handle=f"{handle}{number}")
            add(again, "after")
            found = payloads(again)["ready"]
            assert [one for one in found if one not in ("new", "after")] == before
            again.close()
            lose_control_page(store.directory)


# --- a disk that refuses -------------------------------------------------------------------


def enqueue_relaxed(store):
    return add(store, "new", durable=False)


def enqueue_durably(store):
    return add(store, "new")


def enqueue_with_id(store):
    return add(store, "new", job_id="given")


def enqueue_batch(store):
    return add_many(store, ["new", "newer"])


def claim(store):
    return take(store)


def finish(store):
    return ack(store, store.leased)


def fail(store):
    return nack(store, store.leased)


OPERATIONS = {
    "enqueue, relaxed": enqueue_relaxed,
    "enqueue": enqueue_durably,
    "enqueue with an id": enqueue_with_id,
    "enqueue a batch": enqueue_batch,
    "claim": claim,
    "ack": finish,
    "nack": fail,
}
FAULTS = {
    "full": fails(errno.ENOSPC),
    "broken": fails(errno.EIO),
    "too many files": fails(errno.EMFILE),
}


@pytest.fixture
def prepared(open_store, clock, files):
    """A new store each time, with a waiting and a leased job, its files cold or warm."""
    made = []

    def prepare(directory, *, warm):
        store = open_store(
            directory, clock=clock, vfs=files, handle=f"h{len(made)}", segment_size=4000
        )
        made.append(store)
        add(store, "leased")
        store.leased = take_one(store)
        add(store, "waiting")
        if not warm:
            store.close()
            again = open_store(
                directory,
                clock=clock,
                vfs=files,
                handle=f"c{len(made)}",
                segment_size=4000,
            )
            again.leased = store.leased
            store = again
        files.forget()
        return store

    return prepare


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_refused_call_is_told_and_the_store_stays_usable(
    prepared, files, tmp_path, operation, fault, warm
):
    """Wherever the file system refuses: an error, and nothing acknowledged is lost."""
    store = prepared(str(tmp_path / "dry"), warm=warm)
    operation(store)
    calls = files.names()
    assert "write" in calls
    for number, name in enumerate(calls):
        if name in {"close", "flock"}:
            continue
        store = prepared(str(tmp_path / f"run{number}"), warm=warm)
        before = log_of(store.directory)
        files.at(number, fault)
        try:
            operation(store)
        except StoreFailedError:
            assert name in SYNCS, (number, name)
            continue
        except StorageError:
            assert name not in SYNCS, (number, name)
        files.forget()

        data = log_of(store.directory)
        assert data.startswith(before), (number, name)
        assert store.end == len(data), (number, name)
        assert framing.decode_stretch(data, 0, final=True).damage == []

        add(store, "after")
        found = payloads(store)
        everyone = list(chain.from_iterable(found.values()))
        assert {"leased", "waiting", "after"} <= set(everyone), (number, name)
        assert len(everyone) == len(set(everyone)), (number, name)
        store.close()


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_short_write_is_cut_back(prepared, files, tmp_path, operation):
    store = prepared(str(tmp_path / "dry"), warm=True)
    operation(store)
    (data,) = (call.arguments[1] for call in files.calls if call.name == "write")
    for size in (0, 1, 17, 18, 19, len(data) // 2, len(data) - 1):
        store = prepared(str(tmp_path / f"run{size}"), warm=True)
        before = log_of(store.directory)
        files.on("write", writes_short(size))
        files.on("write", fails(errno.ENOSPC))

        with pytest.raises(StorageError) as caught:
            operation(store)

        assert caught.value.errno == errno.ENOSPC
        assert log_of(store.directory) == before
        files.forget()
        operation(store)
        add(store, "after")
        assert "after" in payloads(store)["ready"]
        store.close()


def test_a_write_that_was_only_interrupted_goes_on(store, files):
    files.on("write", writes_short(10))

    add(store, "a")

    assert payloads(store) == {"ready": ["a"]}


def test_a_rest_that_could_not_be_cut_back_is_settled_by_the_next_writer(store, files):
    files.on("write", writes_short(30))
    files.on("write", fails(errno.ENOSPC))
    files.on("ftruncate", fails(errno.EIO))
    with pytest.raises(StorageError):
        add(store, "refused")
    assert len(log_of(store.directory)) == store.end + 30

    add(store, "after")

    assert payloads(store) == {"ready": ["after"]}
    assert len(list(Path(store.directory, "set-aside").iterdir())) == 1


def test_a_signal_during_a_write_leaves_nothing_behind(store, files):
    """Ctrl-C while the line is in the file but its end is not published."""
    before = log_of(store.directory)
    files.on("write", raises_after(KeyboardInterrupt()))

    with pytest.raises(KeyboardInterrupt):
        add(store, "interrupted")

    assert log_of(store.directory) == before
    add(store, "after")
    assert payloads(store) == {"ready": ["after"]}


# --- a directory that goes away ----------------------------------------------------------------


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("warm", [True, False])
def test_a_deleted_directory_is_an_error_and_never_a_lost_job(store, durable, warm):
    if warm:
        add(store)
    shutil.rmtree(store.directory)

    with pytest.raises(StorageError):
        add(store, durable=durable)


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("way", ["deleted", "moved"])
def test_a_replaced_directory_is_an_error_and_never_a_lost_job(
    open_store, store, clock, durable, warm, way
):
    if warm:
        add(store)
    if way == "moved":
        Path(store.directory).rename(f"{store.directory}.old")
    else:
        shutil.rmtree(store.directory)
    other = open_store(clock=clock, handle="other")
    before = log_of(store.directory)

    with pytest.raises(StorageError):
        add(store, "lost?", durable=durable)

    assert log_of(store.directory) == before
    add(other, "kept")
    assert payloads(other) == {"ready": ["kept"]}


# --- trouble with the index -------------------------------------------------------------------


def test_an_error_of_the_index_never_fails_what_is_written(store, monkeypatch):
    add(store, "a")
    job = take_one(store)
    real, calls = Changes.flush, []

    def flush(self):
        calls.append(1)
        if len(calls) == 1:
            raise lmdb.Error("injected")
        real(self)

    monkeypatch.setattr(Changes, "flush", flush)

    ack(store, job)

    monkeypatch.undo()
    assert calls
    assert counts(store) == {"done": 1}
    assert sum(type(one).__name__ == "Ack" for one in records(store.directory)) == 1


@pytest.mark.parametrize("at", range(1, 6))
def test_an_error_of_the_index_anywhere_in_a_batch_of_decisions_repeats_none(
    store, monkeypatch, at
):
    """What is decided anew is placed anew: nothing is written twice."""
    add(store, "first", job_id="first")
    real, calls = Changes.apply, []

    def apply(self, records_, sizes):
        calls.append(1)
        if len(calls) == at:
            raise lmdb.Error("injected")
        real(self, records_, sizes)

    monkeypatch.setattr(Changes, "apply", apply)

    job = add(store, "second", job_id="second")

    monkeypatch.undo()
    assert payloads(store) == {"ready": ["first", "second"]}
    assert store.look(lambda tables: tables.find("second"))[0] == job.at


def test_an_index_that_cannot_be_built_is_told_as_an_error_of_ours(
    open_store, directory, clock, monkeypatch
):
    store = open_store(clock=clock)

    def refuse(*arguments, **options):
        raise lmdb.Error("injected")

    monkeypatch.setattr(lmdb, "open", refuse)

    with pytest.raises(NobrokerError):
        counts(store)
    with pytest.raises(NobrokerError):
        take(store)
    add(store, "needs no index")
    monkeypatch.undo()
    assert payloads(store) == {"ready": ["needs no index"]}


def test_a_decision_that_fails_writes_nothing(store):
    before = log_of(store.directory)

    def decide(transaction):
        raise ZeroDivisionError

    for durable in (True, False):
        with pytest.raises(ZeroDivisionError):
            store.run(decide, timeout=TIMEOUT, durable=durable)

    assert log_of(store.directory) == before
    add(store, "after")


def test_the_index_is_never_ahead_of_the_published_end(store, files):
    """A writer that dies between its write and the publishing has applied nothing."""
    add(store, "a")
    job = take_one(store)
    files.on("write", raises_after(Killed()))
    with pytest.raises(Killed):
        ack(store, job)

    applied = store.look(lambda tables: tables.meta.applied)

    assert applied == store.control.words[END]
    assert everything(store)["orphans"] == 0
