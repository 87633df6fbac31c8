"""Where a process appends; what is adopted and cut there is shown with the write path."""

from __future__ import annotations

import pytest

from django_nobroker.engine.control import END, LAST, SEGMENT
from django_nobroker.engine.errors import StorageError
from django_nobroker.engine.logend import LogEnd

from .driving import add, records, segments


@pytest.fixture
def end(store):
    return LogEnd(store.entrance._writer._parts)


def test_the_end_stands_where_the_control_page_says(store, end, files):
    add(store)

    with store.lock.held(1):
        descriptor = end.check()
        assert files.fstat(descriptor).st_size == store.control.words[END]


def test_what_is_appended_is_published_with_its_last_record(store):
    job = add(store)

    words = store.control.words
    assert words[LAST] == job.at == records(store.directory)[-1].at
    assert words[END] == segments(store.directory)[0].stat().st_size
    assert words[SEGMENT] == 0


def test_a_segment_of_another_store_is_never_appended_to(store, end):
    """A store was put in the place of this one before this process wrote at all."""
    path = segments(store.directory)[0]
    data = path.read_bytes()
    from django_nobroker.engine import framing

    first = records(store.directory)[0]
    first.store = "00" * 16
    line = framing.encode_transaction([first], first.at, first.d)[0]
    path.write_bytes(line + data[len(line) :])

    with store.lock.held(1), pytest.raises(StorageError, match="replaced"):
        end.check()
