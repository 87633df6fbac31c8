"""The index is a replica: equal to the log, and anybody may throw it away."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_nobroker.engine import deadletters, settle
from django_nobroker.engine.errors import StorageError
from django_nobroker.engine.index import Index
from django_nobroker.engine.record import Enqueue, Failure, JobRecord
from django_nobroker.engine.store import Store
from django_nobroker.engine.tables import Meta
from tests.faults.hands import SettableClock

from . import driving
from .driving import (
    TIMEOUT,
    ack,
    add,
    add_many,
    counts,
    everything,
    held,
    nack,
    payloads,
    records,
    recount,
    release,
    segments,
    take,
    take_one,
)

ROOT = Path(__file__).resolve().parents[2]


def replica(tmp_path, handle="one"):
    """Return the directory of the only index below a root."""
    (found,) = (tmp_path / f"index-{handle}").glob("nobroker-*/*")
    return found


def count_stretches(monkeypatch):
    calls = []
    real = Index.apply_stretch

    def apply_stretch(self, changes, end, *arguments):
        calls.append(changes.meta.applied)
        return real(self, changes, end, *arguments)

    monkeypatch.setattr(Index, "apply_stretch", apply_stretch)
    return calls


# --- equal to the log -----------------------------------------------------------

STEPS = (
    "add",
    "batch",
    "later",
    "take",
    "ack",
    "nack",
    "retry",
    "bury",
    "release",
    "extend",
    "requeue",
    "discard",
    "advance",
    "look",
)


def play(store, clock, steps):  # noqa: C901, PLR0912 - one branch an operation
    """Let a history happen; whatever does not fit is passed over."""
    leased = []
    for number, (step, choice) in enumerate(steps):
        job = leased[choice % len(leased)] if leased else None
        queue = "ab"[choice % 2]
        if step == "add":
            add(store, number, queue=queue, priority=choice % 3, durable=False)
        elif step == "batch":
            add_many(store, [number] * 3, queue=queue, durable=False)
        elif step == "later":
            add(store, number, queue=queue, delay=choice, durable=False)
        elif step == "take":
            leased += take(
                store,
                1 + choice % 3,
                durable_only=False,
                delay=lambda queue, attempt: attempt - 1.0,
            )
        elif step == "advance":
            clock.advance(choice * 5)
        elif step == "look":
            counts(store)
        elif step in ("requeue", "discard"):
            known = [one.at for one in records(store.directory) if type(one) is Enqueue]
            move = getattr(deadletters, step)
            move(store, known[choice:], by="", durable=False, timeout=TIMEOUT)
        elif job is not None:
            try:
                if step == "ack":
                    ack(store, job, durable=False)
                elif step in ("nack", "retry"):
                    nack(store, job, delay=0.0 if step == "nack" else 7.0)
                elif step == "release":
                    release(store, job)
                elif step == "extend":
                    settle.extend(store, held(job), 10.0 * choice + 1, timeout=TIMEOUT)
                else:
                    settle.bury(
                        store,
                        held(job),
                        error=Failure(),
                        reason="rejected",
                        durable=False,
                        timeout=TIMEOUT,
                    )
            except settle.NotLeasedError:
                leased.remove(job)


history = st.lists(
    st.tuples(st.sampled_from(STEPS), st.integers(0, 9)), min_size=5, max_size=50
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(steps=history)
def test_after_any_history_the_index_equals_a_replay_from_the_start(
    tmp_path_factory, steps
):
    root = tmp_path_factory.mktemp("replica")
    for name in ("grown", "fresh"):
        (root / name).mkdir()
    clock = SettableClock()
    options = {"clock": clock, "segment_size": 3000}
    grown = Store(str(root / "jobs"), index_root=str(root / "grown"), **options)
    fresh = Store(str(root / "jobs"), index_root=str(root / "fresh"), **options)
    try:
        play(grown, clock, steps)
        assert everything(grown) == everything(fresh)
        assert recount(grown) == everything(grown)["counts"]
        assert everything(grown)["orphans"] == 0
        rows = everything(grown)["rows"]
        jobs = [one.at for one in records(grown.directory) if type(one) is Enqueue]
        assert sorted(rows) == jobs
        assert len(everything(grown)["orders"]) == len(jobs)
    finally:
        grown.close()
        fresh.close()


def test_a_replay_in_small_stretches_is_the_same(open_store, store, clock, monkeypatch):
    """Wherever a stretch ends, within a record or within a batch."""
    for n in range(10):
        add_many(store, [n] * (1 + n % 4))
    for job in take(store, 6):
        ack(store, job)
    whole = everything(store)
    for size in (1, 200, 333, 1000):
        monkeypatch.setattr("django_nobroker.engine.index.STRETCH", size)

        again = open_store(clock=clock, handle=f"s{size}")

        assert everything(again) == whole


def test_looking_changes_no_byte_of_the_store(store):
    add(store)
    before = driving.snapshot(store.directory)

    counts(store)
    everything(store)

    assert driving.snapshot(store.directory) == before


def test_a_replica_catches_up_from_where_it_was(open_store, store, clock, monkeypatch):
    add(store)
    counts(store)
    at = store.end
    store.close()
    calls = count_stretches(monkeypatch)

    again = open_store(clock=clock)
    add(again)
    counts(again)

    assert calls == [at]


# --- thrown away and built anew ------------------------------------------------------


def test_a_replica_deleted_under_a_living_process_harms_nobody(
    open_store, store, clock, tmp_path
):
    add(store, "a")
    counts(store)
    shutil.rmtree(replica(tmp_path))

    add(store, "b")
    assert counts(store) == {"ready": 2}
    ack(store, take_one(store))
    store.close()

    again = open_store(clock=clock)
    assert counts(again) == {"ready": 1, "done": 1}


def test_a_replica_whose_mark_does_not_match_the_log_is_built_anew(
    open_store, store, clock, tmp_path, monkeypatch
):
    add(store, "a")
    counts(store)
    store.close()
    env = lmdb.open(str(replica(tmp_path)), map_size=1 << 30)
    with env.begin(write=True) as txn:
        import msgspec

        from django_nobroker.engine import keys

        meta = msgspec.msgpack.decode(txn.get(keys.META), type=Meta)
        meta.sum = "00000000"
        txn.put(keys.META, msgspec.msgpack.encode(meta))
    env.close()
    calls = count_stretches(monkeypatch)

    again = open_store(clock=clock)

    assert counts(again) == {"ready": 1}
    assert calls[0] == 0


def test_a_replica_of_a_log_that_was_cut_is_built_anew(open_store, store, clock):
    add(store, "kept")
    end = store.end
    add(store, "cut")
    assert counts(store) == {"ready": 2}
    store.close()
    os.truncate(segments(store.directory)[0], end)

    again = open_store(clock=clock)

    assert counts(again) == {"ready": 1}
    add(again, "after")
    assert payloads(again) == {"ready": ["kept", "after"]}


def test_a_log_that_was_cut_and_grew_beyond_is_noticed(open_store, store, clock):
    """The mark's record is not there any more, although the end is further on."""
    add(store, "kept")
    end = store.end
    add(store, "cut")
    assert counts(store) == {"ready": 2}
    store.close()
    os.truncate(segments(store.directory)[0], end)
    other = open_store(clock=clock, handle="two")
    for n in range(5):
        add(other, n)

    again = open_store(clock=clock)

    assert payloads(again) == {"ready": ["kept", 0, 1, 2, 3, 4]}


def test_a_garbled_replica_is_built_anew(open_store, store, clock, tmp_path):
    add(store, "a")
    counts(store)
    store.close()
    data = replica(tmp_path) / "data.mdb"
    data.write_bytes(os.urandom(data.stat().st_size))

    again = open_store(clock=clock)

    assert counts(again) == {"ready": 1}


@pytest.mark.parametrize("where", ["begin", "get", "put"])
def test_an_error_of_lmdb_while_looking_costs_a_rebuild_only(
    store, where, monkeypatch, tmp_path
):
    add(store, "a")
    counts(store)
    add(store, "b")
    (replica(tmp_path) / "seen").touch()
    broken = [True]

    def once(self, *arguments, **options):
        if broken:
            broken.clear()
            raise lmdb.Error("injected")
        return real(self, *arguments, **options)

    from django_nobroker.engine.changes import Changes
    from django_nobroker.engine.tables import Tables

    kind, name = {
        "begin": (Index, "_make_due"),
        "get": (Tables, "row"),
        "put": (Changes, "flush"),
    }[where]
    real = getattr(kind, name)
    monkeypatch.setattr(kind, name, once)

    assert payloads(store) == {"ready": ["a", "b"]}
    assert not broken
    assert not (replica(tmp_path) / "seen").exists()


def test_an_end_read_before_others_went_on_is_no_reason_to_throw_it_away(
    store, tmp_path
):
    """Two processes share a replica: one may apply what the other has not seen."""
    add(store, "a")
    counts(store)
    old = store.end
    add(store, "b")
    counts(store)
    (replica(tmp_path) / "seen").touch()

    store.index.catch_up(old)

    assert (replica(tmp_path) / "seen").exists()
    assert counts(store) == {"ready": 2}


def test_two_processes_share_one_replica(store, tmp_path):
    add(store, "ours")
    counts(store)
    ours = replica(tmp_path)
    code = f"""
from tests.engine.driving import add, ack, counts, take_one
from tests.faults.hands import SettableClock
from django_nobroker.engine.store import Store
root = {str(tmp_path / "index-one")!r}
store = Store({store.directory!r}, index_root=root, clock=SettableClock())
ack(store, take_one(store))
add(store, "theirs")
print(counts(store))
store.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("{'ready': 1, 'done': 1}\n", "")
    assert counts(store) == {"ready": 1, "done": 1}
    assert replica(tmp_path) == ours
    assert payloads(store) == {"done": ["ours"], "ready": ["theirs"]}


def test_a_process_that_throws_the_replica_away_does_not_disturb_others(
    store, tmp_path
):
    add(store, "ours")
    counts(store)
    code = f"""
from tests.engine.driving import add, counts
from tests.faults.hands import SettableClock
from django_nobroker.engine.store import Store
root = {str(tmp_path / "index-one")!r}
store = Store({store.directory!r}, index_root=root, clock=SettableClock())
counts(store)
store.index.discard()
add(store, "theirs")
print(counts(store))
store.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("{'ready': 2}\n", "")
    add(store, "ours again")
    assert counts(store) == {"ready": 3}


def test_threads_may_look_while_another_throws_the_replica_away(store):
    import threading

    for n in range(20):
        add(store, n, durable=False)
    errors = []
    stop = threading.Event()

    def look():
        try:
            while not stop.is_set():
                assert counts(store) == {"ready": 20}
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        store.index.discard()
        counts(store)
    stop.set()
    for thread in threads:
        thread.join(20)

    assert errors == []


# --- where it lives ---------------------------------------------------------------------


def test_the_replica_is_outside_the_store_and_private(store, tmp_path):
    add(store)
    counts(store)

    path = replica(tmp_path)

    assert not list(Path(store.directory).glob("**/*.mdb"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for file in path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (path / "store").read_text() == store.directory


@pytest.mark.parametrize("trouble", ["open to all", "a link", "a file"])
def test_a_place_that_is_not_ours_alone_is_not_used(
    open_store, directory, clock, tmp_path, trouble
):
    place = tmp_path / "index-one" / f"nobroker-{os.getuid()}"
    place.parent.mkdir()
    if trouble == "open to all":
        place.mkdir(mode=0o777)
        place.chmod(0o777)
    elif trouble == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "elsewhere")
    else:
        place.touch()
    store = open_store(clock=clock)
    add(store)

    with pytest.raises(StorageError, match="No place for the index"):
        counts(store)

    assert not list((tmp_path / "index-one").glob("**/*.mdb"))
    add(store)


@pytest.mark.root
def test_a_place_that_belongs_to_somebody_else_is_not_used(
    open_store, directory, clock, tmp_path
):
    if os.getuid() != 0:
        pytest.skip("only root can give a directory away")
    place = tmp_path / "index-one" / "nobroker-0"
    place.mkdir(parents=True, mode=0o700)
    os.chown(place, 12345, 12345)
    store = open_store(clock=clock)

    with pytest.raises(StorageError, match="belongs to this user alone"):
        counts(store)


def test_the_next_place_is_taken_when_the_first_one_is_not_usable(
    open_store, clock, tmp_path, monkeypatch
):
    bad, good = tmp_path / "bad", tmp_path / "good"
    bad.write_text("a file")
    good.mkdir()
    store = open_store(clock=clock)
    monkeypatch.setattr(store.index, "roots", [str(bad), str(good)])
    add(store)

    assert counts(store) == {"ready": 1}
    assert list(good.glob("nobroker-*/*/data.mdb"))


def test_another_boot_has_a_replica_of_its_own_and_sweeps_the_old_one(
    open_store, store, clock, tmp_path
):
    """After a power cut an LMDB file may be broken in a way that kills its reader."""
    add(store)
    counts(store)
    old = replica(tmp_path)
    store.close()
    clock.restart()

    again = open_store(clock=clock)
    counts(again)

    assert replica(tmp_path) != old


def test_a_copy_of_a_store_does_not_find_the_originals_replica(
    open_store, store, clock, tmp_path
):
    add(store, "both")
    counts(store)
    shutil.copytree(store.directory, tmp_path / "copy")
    copy = open_store(str(tmp_path / "copy"), clock=clock)
    add(copy, "copy")
    add(store, "original")

    assert payloads(copy) == {"ready": ["both", "copy"]}
    assert payloads(store) == {"ready": ["both", "original"]}
    assert copy.index.name != store.index.name


def test_the_mark_names_the_last_record(store):
    add(store)
    take_one(store)

    meta = store.look(lambda tables: tables.meta)

    last = records(store.directory)[-1]
    assert isinstance(last, JobRecord)
    data = driving.log_of(store.directory)
    assert (meta.applied, meta.last) == (store.end, last.at)
    assert meta.sum.encode() == data[last.at : last.at + 8]
