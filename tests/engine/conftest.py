"""Stores that are closed when the test is over, each with an index of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from django_nobroker.engine.store import Store
from tests.faults.files import FaultyFiles
from tests.faults.hands import SettableClock

OpenStore = Callable[..., Store]


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(tmp_path / "jobs")


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def files() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def open_store(tmp_path: Path, directory: str) -> Iterator[OpenStore]:
    """Open stores; another ``handle`` has an index of its own, as another container has."""
    opened: list[Store] = []

    def make(path: str = directory, *, handle: str = "one", **options: Any) -> Store:
        root = tmp_path / f"index-{handle}"
        root.mkdir(exist_ok=True)
        store = Store(path, index_root=str(root), **options)
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: OpenStore, clock: SettableClock, files: FaultyFiles) -> Store:
    """A new store with a clock that stands still and files that can be made to fail."""
    return open_store(clock=clock, vfs=files)
