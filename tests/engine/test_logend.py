"""Where a process appends; what is adopted and cut there is shown with the write path."""

from __future__ import annotations

import errno
import os

import pytest

from django_nobroker.engine import verification
from django_nobroker.engine.control import END, LAST, SEGMENT
from django_nobroker.engine.errors import StorageError
from django_nobroker.engine.logend import LogEnd
from tests.faults.files import Killed, fails, raises_after

from .driving import add, payloads, records, segments


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


@pytest.mark.parametrize("bigger", [False, True], ids=["same", "bigger"])
def test_a_segment_that_a_killed_process_began_is_begun_by_the_next_writer(
    store, open_store, clock, files, bigger
):
    """Never may one process go on in the old segment beside the file of a new one."""
    add(store, "before")
    size = 1 << (30 if bigger else 10)
    earlier = open_store(clock=clock, segment_size=size)
    add(earlier, "too")
    files.on("open", raises_after(Killed()), where=creates)
    with pytest.raises(Killed):
        store.writer.roll(1.0)
    assert len(segments(store.directory)) == 2
    later = open_store(clock=clock, handle="later", segment_size=size)

    add(later, "after")
    add(earlier, "at last")

    for one in (later, earlier):
        assert payloads(one) == {"ready": ["before", "too", "after", "at last"]}
        assert verification.verify(one).ok


def test_a_segment_that_cannot_be_made_leaves_the_old_one_in_use(
    store, open_store, clock, files
):
    add(store, "before")
    files.on("write", fails(errno.ENOSPC))
    with pytest.raises(StorageError):
        store.writer.roll(1.0)
    assert len(segments(store.directory)) == 1

    add(store, "after")

    assert len(segments(store.directory)) == 1
    assert payloads(open_store(clock=clock, handle="again")) == {
        "ready": ["before", "after"]
    }


def test_a_segment_of_which_a_file_is_left_is_made_by_the_next_writer(
    store, open_store, clock, files
):
    add(store, "before")
    files.on("write", fails(errno.ENOSPC))
    files.on("unlink", fails(errno.EIO))
    with pytest.raises(StorageError):
        store.writer.roll(1.0)
    assert len(segments(store.directory)) == 2

    add(store, "after")

    assert len(segments(store.directory)) == 2
    assert payloads(open_store(clock=clock, handle="again")) == {
        "ready": ["before", "after"]
    }


def creates(call):
    return bool(call.arguments[1] & os.O_CREAT)
