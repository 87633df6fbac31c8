"""Every byte that is not what was written is found, and nothing else is."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_nobroker.engine import framing, integrity
from django_nobroker.engine.record import Ack, Lease
from tests.faults.files import fails

from .driving import (
    ack,
    add,
    add_many,
    fill,
    flip,
    lose_control_page,
    records,
    segments,
    snapshot,
    take_one,
)


def full(store, **options):
    return integrity.check(store, **options)


def quick(store, **options):
    return integrity.check(store, mode=integrity.QUICK, **options)


def append(store, record):
    """Write a record that no operation would write."""
    store.run(lambda transaction: transaction.add([record]), timeout=10, durable=True)


@pytest.mark.parametrize("mode", integrity.MODES)
def test_a_sound_store_is_sound(store, mode):
    fill(store)

    found = integrity.check(store, mode=mode)

    assert found.ok
    assert (found.errors, found.notes, found.more) == ((), (), 0)
    assert (found.mode, found.start, found.end) == (mode, 0, store.end)
    assert found.segments == 1


def test_every_record_is_looked_at(store, directory):
    fill(store)

    assert full(store).records == len(records(directory))


def test_a_log_of_many_segments_is_sound(open_store):
    store = open_store(segment_size=2000)
    for _ in range(5):
        fill(store)

    assert full(store).segments > 5
    assert full(store).ok
    assert quick(store).ok


def test_damage_is_an_error_with_its_range_and_its_job(store, directory):
    first = fill(store)
    flip(directory, first.at + 100)

    found = full(store)

    assert not found.ok
    (one,) = found.errors
    behind = next(one.at for one in records(directory) if one.at > first.at)
    assert (one.kind, one.start, one.end) == ("damage", first.at, behind)
    assert one.job == first.id


def test_damage_that_no_index_has_seen_whole_is_traced_by_what_is_left_of_it(
    store, directory, open_store
):
    first = fill(store)
    flip(directory, first.at + 125)

    (one,) = full(open_store(handle="two")).errors

    assert one.job == first.id


def test_damage_that_hides_the_id_is_traced_by_the_records_after_it(store, directory):
    add(store)
    job = take_one(store)
    ack(store, job)
    lease = next(one for one in records(directory) if isinstance(one, Lease))
    done = next(one for one in records(directory) if isinstance(one, Ack))
    data = Path(segments(directory)[0]).read_bytes()
    place = data.index(b'"job":', lease.at)
    flip(directory, place + 2)

    (one,) = full(store).errors

    assert (one.start, one.end) == (lease.at, done.at)
    assert one.job == job.row.id


@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_no_flipped_bit_escapes(open_store, tmp_path_factory, where, bit):
    directory = str(tmp_path_factory.mktemp("flipped") / "jobs")
    store = open_store(directory)
    fill(store)
    flip(directory, int(where * store.end), bit=1 << bit)

    found = full(store)

    assert not found.ok
    assert found.errors[0].kind == "damage"
    store.close()


def test_quick_knows_the_damage_that_the_index_has_met(store, directory, open_store):
    first = fill(store)
    flip(directory, first.at + 100)

    assert quick(store).ok, "nobody has read those bytes again"
    (one,) = quick(open_store(handle="two")).errors
    assert (one.kind, one.start) == ("damage", first.at)


def test_quick_sees_a_damaged_last_record(store, directory):
    fill(store)
    flip(directory, store.end - 10)

    (one,) = quick(store).errors

    assert (one.kind, one.end) == ("damage", store.end)


def test_a_log_that_was_cut_is_seen_by_both(store, directory):
    fill(store)
    (path,) = segments(directory)
    os.truncate(path, store.end - 500)

    for mode in integrity.MODES:
        found = integrity.check(store, mode=mode)
        assert "segment" in [one.kind for one in found.errors], mode
        assert found.errors[0].end == store.end


@pytest.mark.parametrize("mode", integrity.MODES)
def test_a_missing_segment_is_named(open_store, directory, mode):
    store = open_store(segment_size=1500)
    for _ in range(4):
        fill(store)
    gone = segments(directory)[1]
    gone.unlink()

    found = integrity.check(store, mode=mode)

    (one,) = [one for one in found.errors if one.kind == "segment"]
    assert gone.name in one.text
    assert "missing" in one.text
    assert one.start == int(gone.name[:20])


@pytest.mark.parametrize("mode", integrity.MODES)
def test_a_segment_of_another_store_is_seen(open_store, directory, tmp_path, mode):
    store = open_store(segment_size=1500)
    other = open_store(str(tmp_path / "other"), segment_size=1500)
    for one in (store, other):
        for _ in range(4):
            fill(one)
    second = segments(directory)[1]
    data = second.read_bytes()
    _, _, body = data.split(b"\n")[0].split(b" ", 2)
    start = msgspec.json.decode(body)
    start["store"] = "0" * 32
    changed = msgspec.json.encode(start)
    line = b"%08x %08d " % (framing._crc32(changed, len(changed)), len(changed))
    second.write_bytes(line + changed + b"\n" + data.split(b"\n", 1)[1])

    found = integrity.check(store, mode=mode)

    assert "belongs to another store" in found.errors[0].text


@pytest.mark.parametrize("mode", integrity.MODES)
def test_a_segment_that_was_changed_with_good_checksums_does_not_fit_the_next(
    open_store, directory, mode
):
    """A segment of an older copy of the store, say."""
    store = open_store(segment_size=1500)
    for _ in range(4):
        fill(store)
    path = segments(directory)[1]
    lines = path.read_bytes().splitlines(keepends=True)
    _, _, body = lines[-1].rstrip(b"\n").split(b" ", 2)
    changed = body.replace(b'"t":1', b'"t":2')
    assert changed != body
    header = b"%08x %08d " % (framing._crc32(changed, len(changed)), len(changed))
    lines[-1] = header + changed + b"\n"
    path.write_bytes(b"".join(lines))

    found = integrity.check(store, mode=mode)

    assert any("another one than it names" in one.text for one in found.errors)


def test_a_record_of_a_job_that_is_not_there_is_an_error(store):
    add(store)
    append(store, Ack(job=7, prev=7, t=1.0))

    (one,) = full(store).errors

    assert (one.kind, one.job) == ("transition", None)
    assert one.text == "the ack record of a job that is not there"
    assert one.end == store.end


def test_a_record_that_skips_one_is_an_error(store):
    job = add(store)
    lease = take_one(store)
    append(store, Ack(job=job.at, prev=job.at, t=1.0))

    (one,) = full(store).errors

    assert one.job == job.id
    assert f"the one before is at {lease.token.position}" in one.text


def test_a_record_that_does_not_fit_the_state_is_an_error(store):
    job = add(store)
    ack(store, take_one(store))
    last = store.look(lambda tables: tables.row(job.at)).last
    append(store, Lease(job=job.at, prev=last, t=1.0, until=9.0, attempt=2))

    (one,) = full(store).errors

    assert one.job == job.id
    assert one.text == "the lease record does not fit the job's state"


def test_an_unfinished_end_is_no_error_and_is_told(store, directory, open_store):
    fill(store)
    store.close()
    lose_control_page(directory)
    (path,) = segments(directory)
    end = path.stat().st_size
    with path.open("ab") as log:
        log.write(b"torn")

    for mode in integrity.MODES:
        found = integrity.check(open_store(read_only=True, handle=mode), mode=mode)
        (note,) = found.notes
        assert found.ok
        assert (note.kind, note.start, note.end) == ("torn", end, end + 4)


def test_what_was_never_acknowledged_is_no_error_once_a_recovery_has_listed_it(
    store, directory, open_store
):
    first = add(store, durable=False)
    add(store, durable=False)
    store.close()
    lose_control_page(directory)
    flip(directory, first.at + 60)

    found = full(open_store(handle="two"))

    (note,) = found.notes
    assert found.ok
    assert (note.kind, note.start) == ("hole", first.at)


def test_an_operation_of_a_newer_version_is_told_and_is_no_error(
    store, directory, open_store
):
    add(store)
    end = store.end
    store.close()
    lose_control_page(directory)
    body = msgspec.json.encode({"op": "teleport", "at": end, "d": end})
    line = b"%08x %08d %b\n" % (framing._crc32(body, len(body)), len(body), body)
    with segments(directory)[0].open("ab") as log:
        log.write(line)

    found = full(open_store(handle="two"))

    assert found.ok
    (note,) = found.notes
    assert (note.kind, note.start, note.end) == ("unknown", end, end + len(line))
    assert "teleport" in note.text


def test_errors_beyond_the_budget_are_counted(store, directory):
    jobs = add_many(store, range(20))
    for job in jobs[::2]:
        flip(directory, job.at + 60)

    found = full(store, max_errors=3)

    assert [one.start for one in found.errors] == [job.at for job in jobs[:6:2]]
    assert found.more == 7
    assert not found.ok


def test_progress_is_told_up_to_the_end(open_store):
    store = open_store()
    for _ in range(3):
        add_many(store, ["x" * 500_000] * 2)
    seen = []

    full(store, progress=lambda done, total: seen.append((done, total)))

    assert len(seen) > 1
    assert seen == sorted(seen)
    assert seen[-1] == (store.end, store.end)


def test_a_disk_that_cannot_be_read_is_an_error_in_the_report(store, files):
    for _ in range(4):
        fill(store)
    files.on(
        "pread",
        fails(errno.EIO),
        again=True,
        where=lambda call: call.arguments[1] > 4096,
    )

    found = full(store)

    assert not found.ok
    assert "unreadable" in [one.kind for one in found.errors]
    files.forget()
    assert full(store).ok


def test_a_check_needs_permission_to_read_only_and_changes_nothing(
    store, directory, open_store
):
    fill(store)
    store.close()
    before = snapshot(directory)
    again = open_store(read_only=True, handle="two")

    assert full(again).ok
    assert quick(again).ok
    assert snapshot(directory) == before


def test_a_check_leaves_no_second_index_behind(store, tmp_path):
    fill(store)
    store.look(lambda tables: None)
    before = sorted((tmp_path / "index-one").iterdir())

    full(store)

    assert sorted((tmp_path / "index-one").iterdir()) == before


def test_writers_go_on_while_a_store_is_checked(store):
    add_many(store, range(5))
    end = store.end

    found = full(store, progress=lambda done, total: add(store))

    assert found.ok
    assert found.end == end < store.end


def test_a_report_is_plain_values_for_json_and_cannot_be_changed(store, directory):
    first = fill(store)
    flip(directory, first.at + 100)

    found = full(store)

    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["errors"][0]["job"] == first.id
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.ok = True
