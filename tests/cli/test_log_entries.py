"""The log is read as its bytes stand there, whatever is wrong with them."""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise

import pytest

from django_nobroker import Queue
from django_nobroker.cli.log_entries import DAMAGE, DROPPED, UNFINISHED, LogEntries
from django_nobroker.engine import framing
from django_nobroker.engine.record import Unknown
from django_nobroker.engine.shared import close_store, open_store


@pytest.fixture
def several(directory):
    """A store of many small segments, and its queue."""
    store = open_store(directory, segment_size=2000)
    with Queue(directory) as queue:
        yield queue
    close_store(store)


def read(directory, start=None):
    with closing(LogEntries(str(directory))) as entries:
        first = entries.first if start is None else start
        return list(entries.between(first, entries.end))


def newest(directory):
    return max(directory.glob("*.log"))


def test_every_byte_of_the_log_is_in_one_entry(several, directory):
    for number in range(50):
        several.enqueue(number)
    several.enqueue("x" * 5000)
    found = read(directory)

    assert len(list(directory.glob("*.log"))) > 3
    assert found[0].start == 0
    assert all(one.end == two.start for one, two in pairwise(found))
    assert all(one.record.at == one.start for one in found)
    with closing(LogEntries(str(directory))) as entries:
        assert found[-1].end == entries.end


@pytest.mark.parametrize("count", [1, 3, 20, 1000])
def test_the_last_ones_are_the_end_of_all(several, directory, count):
    for number in range(30):
        several.enqueue(number)
    with closing(LogEntries(str(directory))) as entries:
        assert entries.last(count, entries.end) == read(directory)[-count:]


def test_damage_is_an_entry_between_the_records(queue, directory):
    for number in range(3):
        queue.enqueue(f"job {number}")
    (log,) = directory.glob("*.log")
    whole = read(directory)
    data = bytearray(log.read_bytes())
    data[data.index(b"job 1")] ^= 1
    log.write_bytes(data)
    found = read(directory)

    assert [(one.start, one.end) for one in found] == [
        (one.start, one.end) for one in whole
    ]
    assert [one.why for one in found] == ["", "", "", DAMAGE, ""]


def test_a_torn_end_is_told_apart(queue, directory):
    queue.enqueue(1)
    with newest(directory).open("ab") as log:
        log.write(b"0123abcd 0000")

    assert read(directory)[-1].why == UNFINISHED


def test_what_a_compaction_drops_meanwhile_is_told(several, directory):
    for number in range(60):
        several.enqueue(number)
    with closing(LogEntries(str(directory))) as entries:
        reading = entries.between(entries.first, entries.end)
        seen = [next(reading)]
        for job in several.lease(60):
            several.ack(job)
        several.compact()
        seen += reading

    dropped = [one for one in seen if one.why == DROPPED]
    assert len(dropped) == 1
    assert dropped[0].end >= min(int(path.stem) for path in directory.glob("*.log"))
    assert all(one.end <= two.start for one, two in pairwise(seen))


def test_a_record_of_a_newer_version_is_there_with_its_line(queue, directory):
    queue.enqueue(1)
    end = read(directory)[-1].end

    class Later(framing.Record, tag="later", tag_field="op", kw_only=True):
        news: str

    (line,) = framing.encode_transaction([Later(news="hello")], end, end)
    with newest(directory).open("ab") as log:
        log.write(line)
    last = read(directory)[-1]

    assert isinstance(last.record, Unknown)
    assert last.line == line
