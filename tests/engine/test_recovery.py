"""What opening a store mends, what it keeps, and what it refuses to touch."""

from __future__ import annotations

import errno
import os
import shutil
import zlib
from pathlib import Path

import pytest

from django_nobroker.engine import framing
from django_nobroker.engine.errors import (
    CorruptLogError,
    StorageError,
    StoreFailedError,
)
from django_nobroker.engine.record import Enqueue, Open, SegmentStart
from tests.faults.files import Killed, fails, raises, raises_after

from .driving import (
    ack,
    add,
    add_many,
    counts,
    everything,
    kill,
    lose_control_page,
    nack,
    payloads,
    records,
    segments,
    snapshot,
    take,
    take_one,
    whole_lines,
)


def spoil(directory, position, size, filling=b"\0"):
    """Overwrite a range of the log as a broken disk does."""
    for path in reversed(segments(directory)):
        base = int(path.stem)
        if base <= position:
            with path.open("r+b") as file:
                file.seek(position - base)
                file.write(filling * size)
            return


def line_of(directory, position):
    data = segments(directory)[0].read_bytes()
    return data[position : data.index(b"\n", position) + 1]


# --- a clean end --------------------------------------------------------------


def test_a_new_store_begins_with_a_segment_and_an_epoch(store):
    start, opening = records(store.directory)

    assert isinstance(start, SegmentStart)
    assert isinstance(opening, Open)
    assert (start.format, start.epoch, start.generation, start.prev) == (1, 1, 1, -1)
    assert bytes.fromhex(start.store) == store.control.store_id
    assert (opening.epoch, opening.boot) == (1, store.clock.boot_id().hex())
    assert store.recovery.created
    assert store.recovery.describe() == "new store"


def test_opening_again_in_the_same_boot_writes_nothing(open_store, store, clock):
    add(store)
    store.close()
    before = snapshot(store.directory)

    again = open_store(clock=clock)

    assert not again.recovery.repaired
    assert again.recovery.describe() == "clean, nothing was repaired"
    assert snapshot(store.directory) == before


def test_the_first_opening_after_a_restart_begins_a_new_epoch(open_store, store, clock):
    add(store)
    store.close()
    clock.restart()

    again = open_store(clock=clock)

    last = records(store.directory)[-1]
    assert isinstance(last, Open)
    assert (last.epoch, last.boot) == (2, clock.boot_id().hex())
    assert not again.recovery.repaired
    assert again.recovery.records_scanned == 3
    assert payloads(again) == {"ready": [1]}


def test_the_new_epoch_is_durable_before_anything_else_is_written(
    open_store, store, clock, files
):
    """Otherwise a power cut could give a fencing token out twice."""
    store.close()
    clock.restart()
    files.forget()

    again = open_store(clock=clock, vfs=files)

    names = files.names()
    assert "fdatasync" in names[names.index("write") :]
    assert again.control.words[9] == again.end  # durable


def test_every_opening_counts_as_the_first_one_where_boots_cannot_be_told(
    open_store, store, clock, monkeypatch
):
    store.close()
    monkeypatch.setattr(clock, "boot_id", lambda: bytes(16))

    epochs = []
    for _ in range(3):
        again = open_store(clock=clock)
        epochs.append(records(store.directory)[-1].epoch)
        again.close()

    assert epochs == [2, 3, 4]


# --- an unfinished end -----------------------------------------------------------


def test_a_torn_end_is_cut_and_kept_beside_the_log(open_store, store, clock):
    add(store, "kept")
    end = store.end
    store.close()
    clock.restart()
    with segments(store.directory)[0].open("ab") as file:
        file.write(b"8665cdb8 00000163 {half a rec")

    again = open_store(clock=clock)

    assert payloads(again) == {"ready": ["kept"]}
    report = again.recovery
    assert report.repaired
    assert report.bytes_cut == 29
    assert report.damage == report.holes == ()
    (name,) = report.set_aside
    kept = Path(store.directory, "set-aside", name)
    assert kept.read_bytes() == b"8665cdb8 00000163 {half a rec"
    assert name.startswith(f"{end:020d}")
    assert "cut 29 bytes" in report.describe()
    assert name in report.describe()


def test_an_unfinished_transaction_is_dropped_whole(open_store, store, clock):
    add(store, "kept")
    before = store.end
    add_many(store, ["a", "b", "c"])
    store.close()
    clock.restart()
    path = segments(store.directory)[0]
    lines = whole_lines(path.read_bytes())
    os.truncate(path, store.end - len(lines[-1]))

    again = open_store(clock=clock)

    assert payloads(again) == {"ready": ["kept"]}
    (name,) = again.recovery.set_aside
    assert name.startswith(f"{before:020d}")
    assert Path(store.directory, "set-aside", name).read_bytes() == b"".join(
        lines[-3:-1]
    )


def test_the_same_place_may_be_cut_more_than_once(open_store, store, clock):
    store.close()
    names = []
    for n in range(3):
        clock.restart()
        with segments(store.directory)[0].open("ab") as file:
            file.write(b"torn %d" % n)
        again = open_store(clock=clock)
        names += again.recovery.set_aside
        again.close()
        os.truncate(segments(store.directory)[0], store.end)

    assert len(set(names)) == 3


def test_a_repaired_store_opens_clean_and_takes_more(open_store, store, clock):
    add(store, "kept")
    store.close()
    clock.restart()
    with segments(store.directory)[0].open("ab") as file:
        file.write(b"torn")
    first = open_store(clock=clock)
    add(first, "more")
    first.close()

    clock.restart()
    second = open_store(clock=clock)

    assert not second.recovery.repaired
    assert payloads(second) == {"ready": ["kept", "more"]}


def test_dying_anywhere_in_a_repair_does_no_harm(open_store, store, clock, files):
    """The next opening finds what the first one left and mends that."""
    add(store, "kept")
    store.close()
    original = snapshot(store.directory)
    clock.restart()
    with segments(store.directory)[0].open("ab") as file:
        file.write(b"torn")
    torn = Path(store.directory).parent / "torn"
    shutil.copytree(store.directory, torn)
    files.forget()
    open_store(clock=clock, vfs=files).close()
    calls = files.names()
    assert "ftruncate" in calls
    for number, name in enumerate(calls):
        for fault in (raises(Killed()), raises_after(Killed())):
            shutil.rmtree(store.directory)
            shutil.copytree(torn, store.directory)
            files.forget()
            files.at(number, fault)
            if name == "close":
                continue  # descriptors of a dead process are closed by the kernel
            with pytest.raises(Killed):
                open_store(clock=clock, vfs=files)
            files.forget()

            again = open_store(clock=clock, vfs=files, handle=f"{number}")

            assert payloads(again) == {"ready": ["kept"]}, (number, name)
            add(again, "more")
            again.close()
            kept = snapshot(Path(store.directory))
            assert kept["00000000000000000000.log"][1].startswith(
                original["00000000000000000000.log"][1]
            )
            assert any(
                content == b"torn"
                for path, (_, content) in kept.items()
                if path.startswith("set-aside/")
            ), (number, name)


# --- damage ------------------------------------------------------------------------


def test_a_damaged_acknowledged_record_costs_that_record_only(open_store, store, clock):
    jobs = [add(store, n) for n in range(5)]
    store.close()
    clock.restart()
    size = len(line_of(store.directory, jobs[2].at))
    spoil(store.directory, jobs[2].at, size)

    again = open_store(clock=clock)

    assert again.recovery.damage == ((jobs[2].at, jobs[2].at + size),)
    assert again.recovery.holes == ()
    assert again.recovery.repaired
    assert f"{jobs[2].at}-{jobs[2].at + size}" in again.recovery.describe()
    assert payloads(again) == {"ready": [0, 1, 3, 4]}


def test_damage_leaves_the_log_as_it_is(open_store, store, clock):
    """Whole records stay where they are, and so do the damaged bytes."""
    jobs = [add(store, n) for n in range(4)]
    store.close()
    clock.restart()
    spoil(store.directory, jobs[1].at + 30, 5)
    before = segments(store.directory)[0].read_bytes()

    open_store(clock=clock)

    after = segments(store.directory)[0].read_bytes()
    assert after.startswith(before)


def test_a_damaged_member_of_an_acknowledged_batch_costs_that_record_only(
    open_store, store, clock
):
    batch = add_many(store, ["a", "b", "c", "d"])
    add(store, "later")  # it knows the batch as durable
    add(store, "last")
    store.close()
    clock.restart()
    spoil(store.directory, batch[1].at + 25, 3)

    again = open_store(clock=clock)

    assert payloads(again) == {"ready": ["a", "c", "d", "later", "last"]}
    assert len(again.recovery.damage) == 1


def test_an_index_built_anew_finds_the_same_in_a_damaged_batch(
    open_store, store, clock
):
    batch = add_many(store, ["a", "b", "c", "d"])
    add(store, "later")
    add(store, "last")
    store.close()
    spoil(store.directory, batch[1].at + 25, 3)

    again = open_store(clock=clock, handle="fresh")

    assert payloads(again) == {"ready": ["a", "c", "d", "later", "last"]}


def test_a_page_of_zeros_that_was_never_acknowledged_is_a_hole(
    open_store, store, clock
):
    """A power cut writes pages in any order; records behind the hole are whole."""
    add(store, "kept")
    lost = add(store, "lost", durable=False)
    add(store, "behind", durable=False)
    store.close()
    clock.restart()
    size = len(line_of(store.directory, lost.at))
    spoil(store.directory, lost.at, size)

    again = open_store(clock=clock)

    assert again.recovery.damage == ()
    assert again.recovery.holes == ((lost.at, lost.at + size),)
    assert payloads(again) == {"ready": ["kept", "behind"]}
    assert records(store.directory)[-1].holes == [(lost.at, lost.at + size)]


def test_a_hole_is_not_reported_as_lost_by_later_openings(open_store, store, clock):
    lost = add(store, "lost", durable=False)
    add(store, "behind", durable=False)
    store.close()
    clock.restart()
    spoil(store.directory, lost.at, len(line_of(store.directory, lost.at)))
    again = open_store(clock=clock)
    add(again, "more")
    add(again, "and more")
    again.close()

    for _ in range(2):
        clock.restart()
        later = open_store(clock=clock)
        assert later.recovery.damage == ()
        assert later.recovery.holes == ()
        assert not later.recovery.repaired
        later.close()


def test_what_is_left_of_a_batch_with_a_hole_never_comes_back(open_store, store, clock):
    """Nobody was promised any of it, so all of it is dropped, for good."""
    batch = add_many(store, ["a", "b", "c"], durable=False)
    add(store, "behind", durable=False)
    store.close()
    clock.restart()
    spoil(store.directory, batch[1].at, len(line_of(store.directory, batch[1].at)))

    again = open_store(clock=clock)
    assert payloads(again) == {"ready": ["behind"]}
    add(again, "more")
    add(again, "and more")
    assert payloads(again) == {"ready": ["behind", "more", "and more"]}
    again.close()

    rebuilt = open_store(clock=clock, handle="fresh")
    assert payloads(rebuilt) == {"ready": ["behind", "more", "and more"]}
    rebuilt.close()
    clock.restart()
    later = open_store(clock=clock, handle="later")
    assert payloads(later) == {"ready": ["behind", "more", "and more"]}


def test_records_of_a_job_whose_enqueue_is_lost_are_passed_over(
    open_store, store, clock
):
    job = add(store, "lost")
    ack(store, take_one(store))
    add(store, "kept")
    store.close()
    clock.restart()
    spoil(store.directory, job.at + 40, 4)

    again = open_store(clock=clock)

    assert payloads(again) == {"ready": ["kept"]}
    assert everything(again)["orphans"] == 2


def test_an_unknown_operation_is_kept_and_reported(open_store, store, clock):
    add(store, "before")
    at = store.end
    store.close()
    clock.restart()
    body = b'{"op":"pause","at":%d,"d":0,"queue":"q"}' % at
    with segments(store.directory)[0].open("ab") as file:
        file.write(b"%08x %08d %b\n" % (zlib.crc32(body, len(body)), len(body), body))

    again = open_store(clock=clock)

    assert not again.recovery.repaired
    assert again.recovery.unknown_operations == ("pause",)
    assert "pause" in again.recovery.describe()
    add(again, "after")
    assert payloads(again) == {"ready": ["before", "after"]}
    assert everything(again)["unknown"] == {"pause": 1}


def test_damage_in_an_older_segment_costs_its_record_only(open_store, directory, clock):
    store = open_store(clock=clock, segment_size=600)
    jobs = [add(store, n) for n in range(30)]
    store.close()
    assert len(segments(directory)) > 4
    clock.restart()
    spoil(directory, jobs[3].at + 30, 4)

    again = open_store(clock=clock, handle="fresh", segment_size=600)

    assert payloads(again) == {"ready": [n for n in range(30) if n != 3]}


@pytest.mark.parametrize("number", [0, 2])
def test_a_damaged_first_record_of_a_segment_costs_no_job(
    open_store, directory, clock, number
):
    store = open_store(clock=clock, segment_size=600)
    for n in range(20):
        add(store, n)
    store.close()
    clock.restart()
    spoil(directory, int(segments(directory)[number].stem) + 20, 4)

    again = open_store(clock=clock, handle="fresh", segment_size=600)

    assert payloads(again) == {"ready": list(range(20))}
    add(again, "more")
    assert counts(again) == {"ready": 21}


# --- what is refused --------------------------------------------------------------


def refused(open_store, directory, clock, match):
    before = snapshot(directory)
    with pytest.raises(CorruptLogError, match=match):
        open_store(directory, clock=clock)
    assert snapshot(directory) == before
    with pytest.raises(CorruptLogError):
        open_store(directory, clock=clock, read_only=True)
    assert snapshot(directory) == before


@pytest.mark.parametrize("control", ["kept", "lost"])
def test_a_missing_middle_segment_is_refused(open_store, directory, clock, control):
    store = open_store(clock=clock, segment_size=600)
    for n in range(30):
        add(store, n)
    store.close()
    clock.restart()
    if control == "lost":
        lose_control_page(directory)
    segments(directory)[2].unlink()

    refused(open_store, directory, clock, "missing")


@pytest.mark.parametrize("control", ["kept", "lost"])
def test_a_missing_first_segment_is_refused(open_store, directory, clock, control):
    store = open_store(clock=clock, segment_size=600)
    for n in range(10):
        add(store, n)
    store.close()
    clock.restart()
    if control == "lost":
        lose_control_page(directory)
    segments(directory)[0].unlink()

    refused(open_store, directory, clock, "missing")


def test_a_foreign_directory_is_refused_and_left_as_it_is(open_store, directory, clock):
    """Other logs name their segments in the same way."""
    Path(directory).mkdir()
    Path(directory, "00000000000000000000.log").write_bytes(os.urandom(5000))
    Path(directory, "00000000000000000000.index").write_bytes(b"")

    refused(open_store, directory, clock, "no job log|does not begin")


def test_text_of_another_kind_is_refused(open_store, directory, clock):
    Path(directory).mkdir()
    Path(directory, "00000000000000000000.log").write_text("2024-01-01 started\n" * 50)

    refused(open_store, directory, clock, "no job log")


@pytest.mark.parametrize("control", ["kept", "lost"])
def test_a_newer_format_is_refused(open_store, store, clock, control):
    store.close()
    clock.restart()
    (first, *_) = records(store.directory)
    first.format = 2
    path = segments(store.directory)[0]
    path.write_bytes(
        framing.encode_transaction([first], first.at, first.d)[0] + b"whatever comes\n"
    )
    if control == "lost":
        lose_control_page(store.directory)

    refused(open_store, store.directory, clock, "upgrade django-nobroker")


def test_a_log_that_does_not_begin_with_a_segments_record_is_refused(
    open_store, directory, clock
):
    Path(directory).mkdir()
    line = framing.encode_transaction([Open(epoch=1, boot="", t=1.0)], 0, 0)[0]
    Path(directory, "00000000000000000000.log").write_bytes(line)

    refused(open_store, directory, clock, "does not begin")


def test_segments_that_are_gone_are_not_taken_for_a_new_store(open_store, store, clock):
    add(store)
    store.close()
    segments(store.directory)[0].unlink()
    before = snapshot(store.directory)

    with pytest.raises(CorruptLogError, match="are gone"):
        open_store(clock=clock)
    assert snapshot(store.directory) == before


# --- a store that was never born ----------------------------------------------------


def test_an_empty_first_segment_holds_nothing_and_is_made_anew(
    open_store, directory, clock
):
    Path(directory).mkdir()
    Path(directory, "00000000000000000000.log").touch()

    store = open_store(clock=clock)

    add(store, "works")
    assert payloads(store) == {"ready": ["works"]}


def test_a_first_record_that_is_cut_off_holds_nothing_and_is_made_anew(
    open_store, store, clock
):
    start = records(store.directory)[0]
    first = framing.encode_transaction([start], start.at, start.d)[0]
    store.close()
    for cut in range(0, len(first), 7):
        clock.restart()
        lose_control_page(store.directory)
        segments(store.directory)[0].write_bytes(first[:cut])

        again = open_store(clock=clock, handle=f"{cut}")

        add(again, "works")
        assert payloads(again) == {"ready": ["works"]}
        again.close()


def test_dying_anywhere_while_a_store_is_made_leaves_no_half_of_one(
    open_store, directory, clock, files
):
    open_store(clock=clock, vfs=files).close()
    calls = files.names()
    for number, name in enumerate(calls):
        if name == "close":
            continue
        for fault in (raises(Killed()), raises_after(Killed())):
            shutil.rmtree(directory, ignore_errors=True)
            files.forget()
            files.at(number, fault)
            with pytest.raises(Killed):
                open_store(clock=clock, vfs=files)
            files.forget()

            again = open_store(clock=clock, vfs=files, handle=f"{number}")

            add(again, "works")
            assert payloads(again) == {"ready": ["works"]}, (number, name)
            again.close()


# --- the control page ------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble", ["lost", "zeros", "noise", "short", "long", "empty"]
)
def test_a_lost_or_garbled_control_page_is_written_anew(
    open_store, store, clock, trouble
):
    add(store, "waiting")
    take_one(store)
    kill_me = add(store, "dead")
    kill(store)
    store.close()
    page = Path(store.directory, "control")
    if trouble == "lost":
        page.unlink()
    else:
        page.write_bytes(
            {
                "zeros": bytes(4096),
                "noise": os.urandom(4096),
                "short": page.read_bytes()[:100],
                "long": page.read_bytes() + b"x",
                "empty": b"",
            }[trouble]
        )

    again = open_store(clock=clock)

    assert payloads(again) == {"leased": ["waiting"], "dead": ["dead"]}
    assert page.stat().st_size == 4096
    add(again, "more")
    assert kill_me.at > 0
    assert counts(again) == {"ready": 1, "leased": 1, "dead": 1}


def test_a_lease_survives_the_loss_of_the_control_page_in_the_same_boot(
    open_store, store, clock
):
    """The epoch rises, the generation does not: the boot clock went on."""
    add(store)
    job = take_one(store)
    store.close()
    lose_control_page(store.directory)

    again = open_store(clock=clock)

    assert take(again) == []
    ack(again, job)
    assert counts(again) == {"done": 1}


def test_a_log_that_somebody_cut_is_mended_by_the_next_opening(
    open_store, store, clock
):
    """The control page of this boot still tells an end that is not there any more."""
    add(store, "kept")
    end = store.end
    lost = add(store, "lost")
    store.close()
    os.truncate(segments(store.directory)[0], end + 10)

    again = open_store(clock=clock)

    assert payloads(again) == {"ready": ["kept"]}
    assert again.recovery.repaired
    assert again.recovery.bytes_cut == 10
    add(again, "more")
    assert payloads(again) == {"ready": ["kept", "more"]}
    assert lost.at == end


# --- trouble while mending ------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_repair_that_fails_tells_so_and_the_next_one_succeeds(
    open_store, store, clock, files, number
):
    add(store, "kept")
    store.close()
    clock.restart()
    with segments(store.directory)[0].open("ab") as file:
        file.write(b"torn")
    files.forget()
    files.on("ftruncate", fails(number))

    with pytest.raises(StorageError) as caught:
        open_store(clock=clock, vfs=files)

    assert caught.value.errno == number
    files.forget()
    assert payloads(open_store(clock=clock, vfs=files)) == {"ready": ["kept"]}


def test_a_repair_keeps_what_jobs_were_at(open_store, store, clock):
    """Two attempts, a delay, a dead one: the state is what the log says."""
    add(store, "twice")
    nack(store, take_one(store), delay=50.0)
    add(store, "dead", priority=-1)
    kill(store)
    add(store, "done")
    ack(store, take_one(store), {"a": 1})
    before = everything(store)
    store.close()
    lose_control_page(store.directory)

    again = open_store(clock=clock, handle="fresh")

    after = everything(again)
    assert after.pop("epoch") == before.pop("epoch") + 1
    assert after == before


def test_payloads_are_read_after_a_repair(open_store, store, clock):
    job = add(store, {"deep": ["text", 1.5, None]})
    store.close()
    clock.restart()

    again = open_store(clock=clock)

    found = again.log.record_at(job.at)
    assert found is not None
    assert isinstance(found[0], Enqueue)
    assert payloads(again) == {"ready": [{"deep": ["text", 1.5, None]}]}


def test_a_damaged_first_record_of_the_only_segment_costs_no_job(
    open_store, store, clock
):
    add(store, "kept")
    identity = store.control.store_id
    store.close()
    clock.restart()
    spoil(store.directory, 20, 4)

    again = open_store(clock=clock)

    assert payloads(again) == {"ready": ["kept"]}
    add(again, "more")
    assert payloads(again) == {"ready": ["kept", "more"]}
    assert again.control.store_id == identity


def test_a_segment_that_begins_with_a_torn_record_costs_nothing_before_it(
    open_store, directory, clock
):
    """Also when all before was durable, so that nobody had to look farther back."""
    store = open_store(clock=clock, segment_size=700)
    while len(segments(directory)) < 3:
        add(store, store.end)
    store.close()
    before = payloads(open_store(clock=clock))["ready"][:-1]
    newest = segments(directory)[-1]
    first_line = whole_lines(newest.read_bytes())[0]
    assert framing.decode_at(first_line, 0, int(newest.stem))[0].d == int(newest.stem)
    for size in range(len(first_line)):
        newest.write_bytes(first_line[:size])
        lose_control_page(directory)
        clock.restart()

        again = open_store(clock=clock, handle=str(size))

        assert payloads(again) == {"ready": before}
        assert again.recovery.bytes_cut == size
        assert not again.recovery.damage
        again.close()
        assert segments(directory)[-1] != newest


@pytest.mark.parametrize("name", ["fdatasync", "fsync"])
def test_a_sync_that_fails_in_a_repair_is_final(open_store, store, clock, files, name):
    """The kernel takes the pages for clean afterwards, so the next sync would lie."""
    add(store, "before")
    store.close()
    lose_control_page(store.directory)
    files.on(name, fails(errno.EIO))
    with pytest.raises(StoreFailedError):
        open_store(clock=clock, vfs=files)
    files.forget()

    for _ in range(2):
        again = open_store(clock=clock, vfs=files)
        with pytest.raises(StoreFailedError):
            add(again, "after")
        again.close()
    assert files.count("fdatasync", "fsync") == 0

    clock.restart()
    again = open_store(clock=clock, vfs=files)
    add(again, "after")
    assert payloads(again) == {"ready": ["before", "after"]}


def test_a_file_that_a_repair_cannot_open_for_its_sync_is_no_failed_sync(
    open_store, store, clock, files
):
    add(store, "before")
    store.close()
    lose_control_page(store.directory)
    files.on(
        "open",
        fails(errno.EMFILE),
        where=lambda call: call.arguments[0] == store.directory,
    )
    with pytest.raises(StorageError):
        open_store(clock=clock, vfs=files)
    files.forget()

    again = open_store(clock=clock, vfs=files)

    add(again, "after")
    assert payloads(again) == {"ready": ["before", "after"]}
