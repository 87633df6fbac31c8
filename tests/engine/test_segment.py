"""Files of the log: their names, and what they begin with."""

from __future__ import annotations

import errno

import pytest

from django_nobroker.engine import framing, segment
from django_nobroker.engine.errors import CorruptLogError, StorageError
from django_nobroker.engine.record import Open, SegmentStart
from django_nobroker.engine.vfs import Access, Vfs
from tests.faults.files import fails


def start(at=0, **values):
    made = SegmentStart(
        **{
            "format": 1,
            "store": "ab",
            "epoch": 1,
            "boot": "",
            "generation": 1,
            **values,
        }
    )
    return framing.encode_transaction([made], at, 0)[0]


def test_a_name_is_the_position_of_the_first_byte():
    assert segment.file_name(0) == "00000000000000000000.log"
    assert segment.file_name(67_108_864) == "00000000000067108864.log"


def test_only_segments_are_found_lowest_first(tmp_path):
    for name in (
        "00000000000000000900.log",
        "00000000000000000000.log",
        "00000000000000000000.log.new",
        "1.log",
        "control",
        "0000000000000000000x.log",
    ):
        (tmp_path / name).touch()

    assert segment.positions(str(tmp_path), Vfs()) == [0, 900]


def test_a_segment_is_made_with_its_first_record(tmp_path):
    vfs = Vfs()
    fd = segment.create(str(tmp_path), start(500), 500, vfs, Access())
    vfs.close(fd)

    found = segment.read_start(str(tmp_path), 500, vfs)

    assert found is not None
    assert found.store == "ab"


def test_what_a_process_left_that_died_at_this_place_is_overwritten(tmp_path):
    vfs = Vfs()
    (tmp_path / segment.file_name(500)).write_bytes(b"half a record of the dead")

    vfs.close(segment.create(str(tmp_path), start(500), 500, vfs, Access()))

    assert (tmp_path / segment.file_name(500)).read_bytes() == start(500)


@pytest.mark.parametrize("content", [b"", b"noise" * 100, start(7)])
def test_a_torn_or_damaged_beginning_is_none(tmp_path, content):
    (tmp_path / segment.file_name(0)).write_bytes(content)

    assert segment.read_start(str(tmp_path), 0, Vfs()) is None


def test_a_newer_format_is_refused_with_what_to_do(tmp_path):
    (tmp_path / segment.file_name(0)).write_bytes(start(format=2))

    with pytest.raises(CorruptLogError, match=r"format 2.*upgrade django-nobroker"):
        segment.read_start(str(tmp_path), 0, Vfs())


def test_another_first_record_is_refused(tmp_path):
    line = framing.encode_transaction([Open(epoch=1, boot="", t=1.0)], 0, 0)[0]
    (tmp_path / segment.file_name(0)).write_bytes(line)

    with pytest.raises(CorruptLogError, match="does not begin"):
        segment.read_start(str(tmp_path), 0, Vfs())


@pytest.mark.parametrize("size", [0, 5, 12, 18, 19, 40, 100])
def test_a_first_record_that_is_cut_off_was_never_born(tmp_path, size):
    (tmp_path / segment.file_name(0)).write_bytes(start()[:size])

    assert segment.is_unborn(str(tmp_path), Vfs())


@pytest.mark.parametrize(
    "content",
    [
        start(),
        start()[:-1] + b"x",
        b"\x00" * 10,
        b"2024-01-01",
        b'0123abcd 00000150 {"op":"enqueue"',
        b'0123abcd 00000150 {"op":"segment","at":7',
        b"8665cdb8 00000163 " + b"{" * 300,
    ],
)
def test_anything_else_is_not_taken_for_an_unborn_store(tmp_path, content):
    (tmp_path / segment.file_name(0)).write_bytes(content)

    assert not segment.is_unborn(str(tmp_path), Vfs())


def test_a_store_of_two_segments_was_born(tmp_path):
    (tmp_path / segment.file_name(0)).touch()
    (tmp_path / segment.file_name(500)).touch()

    assert not segment.is_unborn(str(tmp_path), Vfs())


@pytest.mark.parametrize("name", ["listdir", "stat"])
def test_segments_that_cannot_be_looked_at_are_told_as_an_error_of_ours(
    tmp_path, files, name
):
    (tmp_path / segment.file_name(0)).touch()
    files.on(name, fails(errno.EIO))

    with pytest.raises(StorageError):
        segment.sizes(str(tmp_path), files)


@pytest.mark.parametrize("name", ["listdir", "unlink", "fsync"])
def test_a_segment_that_cannot_be_removed_is_told_as_an_error_of_ours(
    tmp_path, files, name
):
    (tmp_path / segment.file_name(0)).touch()
    files.on(name, fails(errno.EIO))

    with pytest.raises(StorageError):
        segment.remove_before(str(tmp_path), 500, files)
