"""Where indexes live, and which of those left behind are swept."""

from __future__ import annotations

import os

import pytest

from django_nobroker.engine import host, place
from django_nobroker.engine.errors import StorageError


def make(parent, name, store=None):
    path = parent / name
    path.mkdir(parents=True, mode=0o700)
    (path / "data.mdb").touch()
    if store is not None:
        place.write_note(str(path), str(store))
    return path


def name_for(store, boot=b"\x01" * 16, form=1):
    return place.name(b"\xab" * 16, boot, os.stat(store), form)


@pytest.fixture
def parent(tmp_path):
    made = tmp_path / "index"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def home(tmp_path):
    made = tmp_path / "jobs"
    made.mkdir()
    return made


def test_a_name_tells_apart_whatever_makes_another_replica(home, tmp_path):
    (tmp_path / "copy").mkdir()
    names = {
        name_for(home),
        name_for(tmp_path / "copy"),
        name_for(home, boot=b"\x02" * 16),
        name_for(home, form=2),
        place.name(b"\xac" * 16, b"\x01" * 16, os.stat(home), 1),
    }

    assert len(names) == 5
    assert f"-{host.pid_namespace():x}-" in name_for(home)


def test_replicas_of_other_boots_are_swept(parent, home):
    keep = name_for(home)
    old = make(parent, name_for(home, boot=b"\x02" * 16), home)

    place.sweep(str(parent), keep=keep)

    assert not old.exists()


def test_replicas_of_stores_that_are_gone_are_swept(parent, home, tmp_path):
    keep = name_for(home)
    (tmp_path / "gone").mkdir()
    orphan = make(parent, name_for(tmp_path / "gone"), tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    place.sweep(str(parent), keep=keep)

    assert not orphan.exists()


def test_replicas_of_stores_that_were_replaced_are_swept(parent, home, tmp_path):
    keep = name_for(home)
    (tmp_path / "other").mkdir()
    orphan = make(parent, name_for(tmp_path / "other"), tmp_path / "other")
    (tmp_path / "other").rename(tmp_path / "moved")
    (tmp_path / "other").mkdir()

    place.sweep(str(parent), keep=keep)

    assert not orphan.exists()


def test_living_replicas_stay(parent, home, tmp_path):
    (tmp_path / "other").mkdir()
    kept = [
        make(parent, name_for(home), home),
        make(parent, name_for(tmp_path / "other"), tmp_path / "other"),
        make(parent, "something-else"),
    ]

    place.sweep(str(parent), keep=name_for(home))

    assert all(path.exists() for path in kept)


def test_a_replica_that_is_just_being_made_stays(parent, home, tmp_path):
    """Its note is not written yet."""
    (tmp_path / "other").mkdir()
    new = make(parent, name_for(tmp_path / "other"))

    place.sweep(str(parent), keep=name_for(home))

    assert new.exists()


def test_replicas_of_another_pid_namespace_stay(parent, home, tmp_path, monkeypatch):
    """Its stores may be mounted elsewhere, so they only look as if they were gone."""
    (tmp_path / "gone").mkdir()
    monkeypatch.setattr(host, "pid_namespace", lambda: 77)
    theirs = make(parent, name_for(tmp_path / "gone"), "/mounted/elsewhere")
    monkeypatch.undo()

    place.sweep(str(parent), keep=name_for(home))

    assert theirs.exists()


def test_what_a_process_left_half_thrown_away_is_swept(parent, home):
    half = make(parent, f"{name_for(home)}.0a1b2c3d", home)

    place.sweep(str(parent), keep=name_for(home))

    assert not half.exists()


def test_a_private_directory_is_made_with_its_mode_whatever_the_umask(parent):
    before = os.umask(0)
    try:
        path = place.private_directory(str(parent / "mine"))
    finally:
        os.umask(before)

    assert os.stat(path).st_mode & 0o777 == 0o700
    assert place.private_directory(path) == path


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o770, 0o777])
def test_a_directory_that_others_may_enter_is_refused(parent, mode):
    (parent / "open").mkdir()
    (parent / "open").chmod(mode)

    with pytest.raises(StorageError):
        place.private_directory(str(parent / "open"))


def test_throwing_away_removes_a_replica_and_is_no_error_without_one(parent):
    path = make(parent, "one")

    place.throw_away(str(path))
    place.throw_away(str(path))

    assert list(parent.iterdir()) == []
