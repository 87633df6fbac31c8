"""The log as its bytes stand there, entry by entry: records, and what is none.

Nothing is needed for it but the segments: no index, no lock, no sound store. A
compaction may remove segments meanwhile; then the reading goes on behind them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from django_nobroker.engine import segment
from django_nobroker.engine.log import DroppedError, Log
from django_nobroker.engine.record import (
    AnyRecord,
    Enqueue,
    Forget,
    JobRecord,
    Moved,
    Purge,
    Unknown,
)
from django_nobroker.engine.vfs import Access, Vfs

#: What stands somewhere instead of a record.
DAMAGE, UNFINISHED, DROPPED = "damage", "unfinished", "dropped"


@dataclass(frozen=True, slots=True)
class Entry:
    """A range of the log: a record, or what is there instead of one."""

    start: int
    end: int
    record: AnyRecord | Unknown | None = None
    line: bytes = b""  # of a record that this version does not know
    why: str = ""


class LogEntries:
    """Reads the segments of a directory; changes nothing."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._vfs = Vfs()
        self._log = Log(directory, self._vfs, Access())
        self._log.refresh()

    @property
    def first(self) -> int:
        """Where the log begins."""
        return min(self._log.refresh())

    @property
    def end(self) -> int:
        """Where its last byte stands."""
        base, size = segment.sizes(self._directory, self._vfs)[-1]
        return base + size

    def between(self, start: int, end: int) -> Iterator[Entry]:
        """Yield what stands from ``start`` on, in order.

        A start within a record gives the rest of it as damage.
        """
        position = start
        while position < end:
            try:
                for entry in self._stretch(position, end):
                    yield entry
                    position = entry.end
            except DroppedError:
                first = self.first
                if first <= position:
                    raise
                yield Entry(position, first, why=DROPPED)
                position = first

    def _stretch(self, start: int, end: int) -> Iterator[Entry]:
        for decoded in self._log.stretches(start, end):
            entries = [
                Entry(one.at, one.at + size, one, self._line(one, size))
                for one, size in zip(decoded.records, decoded.sizes, strict=True)
            ]
            entries += [
                Entry(*one, why=UNFINISHED if one.end == end else DAMAGE)
                for one in decoded.damage
            ]
            yield from sorted(entries, key=lambda entry: entry.start)

    def last(self, count: int, end: int) -> list[Entry]:
        """Return the last entries, reading no more segments than it takes."""
        found: list[Entry] = []
        stop = end
        for base in reversed(self._log.refresh()):
            part = deque(self.between(base, stop), maxlen=count - len(found))
            found = [*part, *found]
            stop = base
            if len(found) >= count:
                break
        return found

    def _line(self, record: AnyRecord | Unknown, size: int) -> bytes:
        if not isinstance(record, Unknown):
            return b""
        found = self._log.record_at(record.at, size)
        return b"" if found is None else found[1]

    def close(self) -> None:
        """Close the segments."""
        self._log.close()


class OfJob:
    """Tells which entries are about one job, by its id; to be asked in the log's order."""

    def __init__(self, job_id: str) -> None:
        self._id = job_id
        self._numbers: set[int] = set()

    def __call__(self, entry: Entry) -> bool:
        """Tell whether an entry is about the job; damage never is."""
        record = entry.record
        if isinstance(record, Enqueue) and record.id == self._id:
            self._numbers.add(record.at)
            return True
        if isinstance(record, Moved) and record.id == self._id:
            self._numbers.add(record.job)
            return True
        if isinstance(record, JobRecord):
            return record.job in self._numbers
        if isinstance(record, Purge | Forget):
            return not self._numbers.isdisjoint(record.jobs)
        return False
