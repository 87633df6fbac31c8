"""Reading from any position, over segments, and appending at the end."""

from __future__ import annotations

import pytest

from django_nobroker.engine.errors import CorruptLogError, StorageError
from django_nobroker.engine.log import Log
from django_nobroker.engine.vfs import Access, Vfs

from .driving import add, log_of, records, segments


@pytest.fixture
def rolled(open_store, clock):
    store = open_store(clock=clock, segment_size=500)
    for n in range(20):
        add(store, n)
    return store


@pytest.fixture
def log(rolled):
    made = Log(rolled.directory, Vfs(), Access())
    yield made
    made.close()


def test_every_record_is_found_at_its_position(rolled, log):
    for one in records(rolled.directory):
        found = log.record_at(one.at)
        assert found is not None
        assert found[0].at == one.at
        assert log.record_at(one.at, len(found[1])) == found


@pytest.mark.parametrize("offset", [1, 5, 17, 50])
def test_a_position_within_a_record_holds_none(rolled, log, offset):
    for one in records(rolled.directory):
        assert log.record_at(one.at + offset) is None


def test_bytes_are_read_up_to_the_end_of_their_segment(rolled, log):
    data = log_of(rolled.directory)
    position, parts = 0, []
    while position < len(data):
        parts.append(log.read(position, 1 << 20))
        position += len(parts[-1])

    assert b"".join(parts) == data
    assert len(parts) == len(segments(rolled.directory))


@pytest.mark.parametrize("size", [1, 100, 700, 1 << 20])
def test_stretches_hold_every_record_once_whatever_their_size(
    rolled, log, size, monkeypatch
):
    monkeypatch.setattr("django_nobroker.engine.log.STRETCH", size)

    found = [
        one.at for decoded in log.stretches(0, rolled.end) for one in decoded.records
    ]

    assert found == [one.at for one in records(rolled.directory)]


def test_bytes_that_a_segment_lacks_are_damage(rolled, log):
    path = segments(rolled.directory)[1]
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size - 30)

    damage = [one for decoded in log.stretches(0, rolled.end) for one in decoded.damage]

    end = int(path.stem) + size
    assert {one.end for one in damage} <= {end, end - 30}
    assert max(one.end for one in damage) == end


def test_a_segment_that_another_process_began_is_found(rolled, log):
    assert log.refresh()
    end = rolled.end
    while len(segments(rolled.directory)) == len(log.refresh()):
        job = add(rolled, "new")
        log.newest = lambda: rolled.control.words[7]
        assert log.record_at(job.at)[0].at == job.at
        if int(segments(rolled.directory)[-1].stem) > end:
            break


def test_a_position_before_the_log_is_an_error(tmp_path):
    log = Log(str(tmp_path), Vfs(), Access())

    with pytest.raises(CorruptLogError):
        log.read(0, 10)


def test_only_a_few_segments_are_kept_open(open_store, clock, files):
    store = open_store(clock=clock, segment_size=200)
    for n in range(40):
        add(store, n)
    assert len(segments(store.directory)) > 30
    log = Log(store.directory, files, Access())
    files.forget()

    for one in records(store.directory):
        log.record_at(one.at)

    assert files.count("open") - files.count("close") <= 8
    log.close()
    assert files.count("open") == files.count("close")


def test_a_file_that_cannot_be_read_is_told_as_an_error_of_the_store(rolled, files):
    import errno

    from tests.faults.files import fails

    log = Log(rolled.directory, files, Access())
    files.on("pread", fails(errno.EIO))

    with pytest.raises(StorageError) as caught:
        log.read(0, 10)

    assert caught.value.errno == errno.EIO
    assert log.record_at(0) is not None
    log.close()


def test_a_position_was_acknowledged_if_a_later_record_knew_it(store):
    first = add(store)
    second = add(store)
    third = add(store, durable=False)

    assert store.log.was_acknowledged(first.at, store.end)
    assert not store.log.was_acknowledged(second.at, third.at)
    assert store.log.was_acknowledged(second.at, store.end)
    assert not store.log.was_acknowledged(third.at, store.end)
