"""What a repair takes out of the log is kept."""

from __future__ import annotations

import errno
import random

import pytest

from django_nobroker.engine import setaside
from django_nobroker.engine.errors import StorageError
from django_nobroker.engine.vfs import Access
from tests.faults.files import fails
from tests.faults.power import Crash
from tests.faults.recorder import Recorder

from .driving import add, lose_control_page, segments


def test_bytes_are_kept_under_the_position_where_they_stood(tmp_path, files):
    name = setaside.keep(str(tmp_path), 4242, b"torn", files, Access())

    assert name == "00000000000000004242-0"
    assert (tmp_path / "set-aside" / name).read_bytes() == b"torn"
    assert files.count("fdatasync") == 1
    assert files.count("fsync") >= 1


def test_nothing_kept_before_is_overwritten(tmp_path, files):
    names = [
        setaside.keep(str(tmp_path), 7, b"%d" % n, files, Access()) for n in range(3)
    ]

    assert len(set(names)) == 3
    kept = [(tmp_path / "set-aside" / name).read_bytes() for name in names]
    assert kept == [b"0", b"1", b"2"]


def test_a_disk_that_refuses_is_told_before_anything_is_cut(tmp_path, files):
    files.on("write", fails(errno.ENOSPC))

    with pytest.raises(OSError, match="No space"):
        setaside.keep(str(tmp_path), 7, b"torn", files, Access())


@pytest.mark.parametrize(
    "there", [False, True], ids=["new", "made by a killed process"]
)
def test_what_is_kept_is_there_whenever_the_power_fails(tmp_path, there):
    recorder = Recorder(str(tmp_path))
    if there:
        recorder.mkdir(str(tmp_path / setaside.NAME))

    name = setaside.keep(str(tmp_path), 7, b"torn", recorder, Access())

    crash = Crash()
    for change in recorder.trace:
        crash.go_on(change)
    trees = list(crash.states(random.Random(0)))
    assert [tree.get(f"set-aside/{name}") for tree in trees] == [b"torn"]


# --- looking at what was set aside ---------------------------------------------------


def test_nothing_is_listed_where_nothing_was_set_aside(tmp_path, files):
    assert setaside.listing(str(tmp_path), files) == ()


def test_each_entry_tells_where_it_stood_how_much_and_why(tmp_path, files):
    for position, why in ((90, setaside.TORN), (7, setaside.DAMAGED), (7, "")):
        setaside.keep(str(tmp_path), position, b"four", files, Access(), why=why)

    found = setaside.listing(str(tmp_path), files)

    assert [(one.start, one.end, one.size) for one in found] == [
        (7, 11, 4),
        (7, 11, 4),
        (90, 94, 4),
    ]
    assert [one.why for one in found] == [
        "",
        "damaged after it was acknowledged",
        "the unfinished end of the log; nobody was promised anything in it",
    ]
    written = (tmp_path / "set-aside" / found[0].name).stat().st_mtime
    assert found[0].kept_at == written


def test_other_files_are_no_entries(tmp_path, files):
    (tmp_path / "set-aside").mkdir()
    (tmp_path / "set-aside" / "notes.txt").write_text("mine")

    assert setaside.listing(str(tmp_path), files) == ()


def test_the_bytes_of_an_entry_can_be_read(tmp_path, files):
    name = setaside.keep(str(tmp_path), 7, b"torn", files, Access())

    assert setaside.read(str(tmp_path), name, files) == b"torn"


@pytest.mark.parametrize("name", ["../lock", "", "00000000000000000007-1", "lock"])
def test_only_entries_can_be_read(tmp_path, files, name):
    (tmp_path / "set-aside").mkdir()
    (tmp_path / "lock").write_text("not yours")

    with pytest.raises(StorageError):
        setaside.read(str(tmp_path), name, files)


@pytest.mark.parametrize("acknowledged", [True, False])
def test_a_repair_says_why_it_took_bytes_out(open_store, directory, acknowledged):
    store = open_store()
    first = add(store, durable=acknowledged)
    add(store, durable=acknowledged)
    last = add(store, durable=acknowledged)
    store.close()
    lose_control_page(directory)
    (path,) = segments(directory)
    data = bytearray(path.read_bytes())
    data[first.at + 40] ^= 1
    path.write_bytes(data[:-1])

    again = open_store(handle="two")

    damaged, torn = setaside.listing(directory, again.vfs)
    assert (damaged.start, torn.start) == (first.at, last.at)
    assert damaged.why == (
        "damaged after it was acknowledged"
        if acknowledged
        else "damaged, and never acknowledged"
    )
    assert torn.why.startswith("the unfinished end")


def test_whole_records_in_what_was_set_aside_can_be_read(open_store, directory):
    """A transaction of which a part is missing is cut whole, its records with it."""
    from .driving import add_many

    store = open_store()
    begin = store.end
    first, second = add_many(store, ["one", "two"])
    store.close()
    lose_control_page(directory)
    (path,) = segments(directory)
    path.write_bytes(path.read_bytes()[:-5])
    again = open_store(handle="two")

    (entry,) = setaside.listing(directory, again.vfs)
    found = setaside.records(entry, setaside.read(directory, entry.name, again.vfs))

    assert entry.start == begin
    assert [one.at for one in found.records] == [first.at]
    assert [tuple(one) for one in found.damage] == [(second.at, entry.end)]
