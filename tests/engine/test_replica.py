"""A second index is built where there is room, by the one replay, and goes again."""

from __future__ import annotations

import shutil
from typing import NamedTuple

import lmdb
import pytest

from django_nobroker.engine import replica
from django_nobroker.engine.errors import StorageError

from .driving import add_many, fill


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_a_second_index_begins_empty_and_ends_where_it_is_told(store):
    fill(store)
    end = store.end
    fill(store)

    with replica.replica(store) as second:
        assert replica.applied(second) == 0
        replica.grow(second, end)
        assert replica.applied(second) == end
        replica.grow(second, store.end)
        assert replica.applied(second) == store.end


def test_a_record_longer_than_a_stretch_is_no_obstacle(store):
    add_many(store, ["x" * 3_000_000] * 2)

    with replica.replica(store) as second:
        replica.grow(second, store.end)
        assert replica.applied(second) == store.end


def test_nothing_of_it_stays(store, tmp_path):
    with replica.replica(store) as second:
        replica.grow(second, store.end)
        (folder,) = (tmp_path / "index-one").glob("nobroker-second-*")

    assert not folder.exists()


def test_a_place_that_is_nearly_full_is_the_last_choice(store, tmp_path, monkeypatch):
    small, large = tmp_path / "small", tmp_path / "large"
    for place in (small, large):
        place.mkdir()
    monkeypatch.setattr(store.index, "roots", [str(small), str(large)])
    monkeypatch.setattr(
        shutil,
        "disk_usage",
        lambda root: Usage(0, 0, 1000 if root == str(small) else 10**12),
    )

    with replica.replica(store):
        assert list(large.glob("nobroker-second-*"))
        assert not list(small.glob("nobroker-second-*"))


def test_a_place_that_cannot_be_used_is_passed_over(store, tmp_path, monkeypatch):
    store.look(lambda tables: None)
    (tmp_path / "file").write_text("")
    (tmp_path / "good").mkdir()
    roots = [str(tmp_path / "none"), str(tmp_path / "file"), str(tmp_path / "good")]
    monkeypatch.setattr(store.index, "roots", roots)

    with replica.replica(store):
        assert list((tmp_path / "good").glob("nobroker-second-*"))

    monkeypatch.setattr(store.index, "roots", roots[:2])
    with pytest.raises(StorageError, match="No place for a second index"):
        replica.replica(store).__enter__()


def test_trouble_of_the_second_index_is_told_as_what_it_is(store):
    with (
        pytest.raises(StorageError, match="second index could not be built"),
        replica.replica(store),
    ):
        raise lmdb.MapFullError("full")
