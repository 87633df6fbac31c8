"""One store per directory and process."""

from __future__ import annotations

import os
import threading

import pytest

from django_nobroker.engine.errors import QueueClosedError, StorageError
from django_nobroker.engine.shared import close_store, open_store

from .driving import add, counts


@pytest.fixture
def shared(tmp_path):
    opened = []

    def make(path=tmp_path / "jobs", **options):
        store = open_store(path, index_root=str(tmp_path), **options)
        opened.append(store)
        return store

    yield make
    for store in opened:
        close_store(store)


def test_everybody_in_a_process_has_the_same_store(shared, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "jobs")

    stores = {
        id(shared()),
        id(shared(str(tmp_path / "jobs"))),
        id(shared(tmp_path / "x" / ".." / "jobs")),
        id(shared(tmp_path / "link")),
    }

    assert len(stores) == 1


def test_the_last_user_closes_it(tmp_path):
    first = open_store(tmp_path / "jobs", index_root=str(tmp_path))
    second = open_store(tmp_path / "jobs", index_root=str(tmp_path))
    close_store(first)
    add(second)
    close_store(second)

    with pytest.raises(QueueClosedError):
        add(second)
    close_store(second)


def test_a_store_that_was_closed_is_opened_anew(shared, tmp_path):
    first = open_store(tmp_path / "jobs", index_root=str(tmp_path))
    add(first)
    close_store(first)

    again = shared()

    assert again is not first
    assert counts(again) == {"ready": 1}


def test_threads_that_open_at_once_get_one_store(shared):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(shared())) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert len(found) == 8
    assert len({id(store) for store in found}) == 1


def test_a_store_opened_for_looking_is_opened_for_writing_when_asked(shared):
    writer = shared()
    add(writer)
    close_store(writer)
    reader = shared(read_only=True)
    with pytest.raises(StorageError):
        add(reader)
    assert counts(reader) == {"ready": 1}

    again = shared()

    assert again is reader
    add(again)
    assert counts(reader) == {"ready": 2}


def test_a_child_goes_on_with_the_store_of_its_parent(shared):
    store = shared()
    add(store)
    child = os.fork()
    if not child:
        try:
            assert shared() is store
            add(store)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    assert counts(store) == {"ready": 2}
