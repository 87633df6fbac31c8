"""What identifies this machine, and where memory-backed storage is."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from django_nobroker.engine import host


@pytest.fixture(autouse=True)
def forgotten():
    host.boot_id.cache_clear()
    host.boot_clock_offset.cache_clear()
    yield
    host.boot_id.cache_clear()
    host.boot_clock_offset.cache_clear()


def read(monkeypatch, text):
    def read_text(self):
        if text is None:
            raise FileNotFoundError
        return text

    monkeypatch.setattr(Path, "read_text", read_text)


@pytest.mark.linux
@pytest.mark.parametrize("text", [None, "", "nonsense\n"])
def test_a_boot_that_the_system_does_not_tell_is_zero(monkeypatch, text):
    read(monkeypatch, text)

    assert host.boot_id() == bytes(16)


@pytest.mark.linux
def test_a_boot_is_told_by_the_kernel(monkeypatch):
    read(monkeypatch, "00010203-0405-0607-0809-0a0b0c0d0e0f\n")

    assert host.boot_id() == bytes(range(16))


@pytest.mark.linux
@pytest.mark.parametrize(
    ("text", "offset"),
    [
        (None, 0.0),
        ("", 0.0),
        ("monotonic           0         0\nboottime            0         0\n", 0.0),
        ("monotonic 7 0\nboottime 86400 500000000\n", 86400.5),
        ("1 7 0\n7 -10 0\n", -10.0),
    ],
)
def test_a_time_namespaces_offset_is_read(monkeypatch, text, offset):
    read(monkeypatch, text)

    assert host.boot_clock_offset() == offset


def test_an_index_goes_where_it_was_told_to(tmp_path):
    assert host.index_roots(str(tmp_path)) == [str(tmp_path)]


@pytest.mark.linux
def test_an_index_goes_to_memory_or_to_the_temporary_directory():
    roots = host.index_roots()

    assert roots[-1] == tempfile.gettempdir()
    assert set(roots[:-1]) <= {"/dev/shm"}


@pytest.mark.linux
def test_too_little_shared_memory_is_not_used(monkeypatch):
    """Docker gives a container 64 MB."""

    class Small:
        f_bavail, f_frsize = 64 * 256, 4096

    monkeypatch.setattr(os, "statvfs", lambda path: Small)

    assert host.index_roots() == [tempfile.gettempdir()]


@pytest.mark.linux
def test_a_pid_namespace_has_a_number():
    assert host.pid_namespace() == os.stat("/proc/self/ns/pid").st_ino
