"""System calls that go together."""

from __future__ import annotations

import os
import stat

import pytest

from django_nobroker.engine.vfs import Access, Vfs


@pytest.mark.parametrize(
    ("file_mode", "directory_mode"),
    [(0o660, 0o770), (0o600, 0o700), (0o644, 0o755), (0o640, 0o750), (0o666, 0o777)],
)
def test_a_directory_may_be_entered_by_whoever_may_read(file_mode, directory_mode):
    assert Access(file_mode=file_mode).directory_mode == directory_mode


def test_a_group_is_given_by_name_or_number():
    import grp

    name = grp.getgrgid(os.getgid()).gr_name

    assert Access.of(0o660, name).gid == os.getgid()
    assert Access.of(0o660, 5).gid == 5
    assert Access.of(0o660, None).gid is None


def test_an_unknown_group_is_told():
    with pytest.raises((KeyError, ValueError)):
        Access.of(0o660, "no-such-group-anywhere")


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_a_file_is_made_with_its_mode_whatever_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        fd = Vfs().create(str(tmp_path / "f"), os.O_RDWR, Access(file_mode=0o640))
    finally:
        os.umask(before)
    os.close(fd)

    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


def test_the_mode_of_a_file_that_is_there_stays(tmp_path):
    (tmp_path / "f").touch(mode=0o600)

    os.close(Vfs().create(str(tmp_path / "f"), os.O_RDWR, Access(file_mode=0o666)))

    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o600


def test_a_setgid_directory_hands_its_bit_on(tmp_path):
    (tmp_path / "parent").mkdir()
    (tmp_path / "parent").chmod(0o2770)

    made = Vfs().make_directory(str(tmp_path / "parent" / "d"), Access())

    assert made
    assert (tmp_path / "parent" / "d").stat().st_mode & 0o2000
    assert not Vfs().make_directory(str(tmp_path / "parent" / "d"), Access())


def test_all_is_read_although_the_kernel_gives_it_in_parts(tmp_path, files):
    path = tmp_path / "f"
    path.write_bytes(bytes(range(200)))
    fd = files.open(str(path), os.O_RDONLY)
    for _ in range(3):
        files.on(
            "pread",
            lambda call, happen: os.pread(call.arguments[0], 7, call.arguments[2]),
        )

    assert files.read_all(fd, 50, 100) == bytes(range(50, 150))
    assert files.read_all(fd, 150, 100) == bytes(range(150, 200))
    assert files.read_all(fd, 500, 10) == b""
    files.close(fd)


def test_all_is_written_although_the_kernel_takes_it_in_parts(tmp_path, files):
    fd = files.open(str(tmp_path / "f"), os.O_WRONLY | os.O_CREAT)
    for _ in range(3):
        files.on("write", lambda call, happen: os.write(fd, call.arguments[1][:5]))

    files.write_all(fd, b"0123456789" * 5)

    assert (tmp_path / "f").read_bytes() == b"0123456789" * 5
    files.close(fd)
