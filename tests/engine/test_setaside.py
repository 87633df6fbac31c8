"""What a repair takes out of the log is kept."""

from __future__ import annotations

import errno

import pytest

from django_nobroker.engine import setaside
from django_nobroker.engine.vfs import Access
from tests.faults.files import fails


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
