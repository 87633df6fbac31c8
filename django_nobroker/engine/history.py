"""What happened to one job, read back from its records.

Each record of a job names the one before, so the history is a walk backwards
through the log, and costs the index nothing. A compaction writes a job again, with
the records that it had, and may do so while somebody reads: then the row is looked
up anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from json import dumps, loads
from typing import TypeVar

from msgspec import Raw

from . import framing, states
from .log import DroppedError
from .record import (
    Ack,
    AnyRecord,
    Dead,
    Enqueue,
    Failure,
    Forget,
    JobRecord,
    Moved,
    Nack,
    Unknown,
)
from .states import Row
from .store import Store
from .tables import Tables

T = TypeVar("T")

#: A chain longer than this is cut: thousands of heartbeats tell nothing more.
LONGEST = 10_000
#: Payloads that follow each other are read together: so many bytes at most, and with
#: no more than so many others in between.
_WINDOW, _GAP = 64 * 1024, 4 * 1024


def backwards(store: Store, row: Row) -> Iterator[JobRecord | Enqueue]:
    """Yield the records of a job, newest first; a damaged one ends the walk."""
    seen: int | None = None
    for _ in range(3):
        try:
            for record, _ in islice(chain(store, row.last), LONGEST):
                if isinstance(record, Moved):
                    continue
                if seen is None or record.at < seen:
                    seen = record.at
                    yield record
        except DroppedError:
            again = _again(store, row)
            if again is None:
                return
            row = again
        else:
            return


def chain(store: Store, position: int) -> Iterator[tuple[JobRecord | Enqueue, Raw]]:
    """Yield a job's records from one backwards, and their JSON texts, newest first.

    A ``moved`` record comes before those that it holds. Raises ``DroppedError`` when a
    compaction comes in between.
    """
    while (found := store.log.record_at(position)) is not None:
        record, line = found
        if not isinstance(record, JobRecord | Enqueue):
            return
        yield record, Raw(line[framing.HEADER : -1])
        if isinstance(record, Moved):
            yield from _held(record)
        if isinstance(record, Moved | Enqueue):
            return
        position = record.prev


def _held(moved: Moved) -> Iterator[tuple[JobRecord | Enqueue, Raw]]:
    for raw in reversed(moved.records):
        found = framing.decode_body(bytes(raw))
        if isinstance(found, JobRecord | Enqueue):
            yield found, raw


def failure(store: Store, row: Row) -> tuple[Failure, str] | None:
    """Return error and reason of the newest failure, None if there is none or unreadable."""

    def read(row: Row) -> tuple[Failure, str] | None:
        if not row.error:
            return None
        record = _record(store, row.error)
        if isinstance(record, Moved):
            record = _newest(record.records, (Nack, Dead))
        if isinstance(record, Nack | Dead):
            return record.error, record.reason if isinstance(record, Dead) else ""
        return None

    return _reading(store, row, read)


def payload(store: Store, row: Row) -> bytes | None:
    """Return the payload's JSON text; None if the job is forgotten or damaged."""

    def read(row: Row) -> bytes | None:
        if row.state == states.FORGOTTEN:
            return None
        record = _record(store, row.data, row.size)
        if isinstance(record, Moved):
            record = _newest(record.records[:1], (Enqueue,))
        return bytes(record.payload) if isinstance(record, Enqueue) else None

    return _reading(store, row, read)


def payloads(store: Store, rows: Sequence[Row]) -> Iterator[bytes | None]:
    """Yield the payload of each job, like :func:`payload`, reading neighbours at once."""
    window, base = b"", 0
    for number, row in enumerate(rows):
        if not base <= row.data <= base + len(window) - row.size:
            try:
                window = store.log.read(row.data, _neighbours(rows[number:]))
            except DroppedError:
                window = b""
            base = row.data
        found = framing.decode_at(window, row.data - base, base)
        if found is not None and isinstance(found[0], Enqueue):
            yield bytes(found[0].payload)
        else:
            yield payload(store, row)


def _neighbours(rows: Sequence[Row]) -> int:
    """Return how many bytes from the first job on hold its record and those behind it."""
    start = rows[0].data
    end = start + rows[0].size
    for row in rows[1:]:
        if not end <= row.data <= end + _GAP or row.data + row.size > start + _WINDOW:
            break
        end = row.data + row.size
    return end - start


def result(store: Store, row: Row) -> bytes | None:
    """Return the JSON text of a finished job's result, None if it has none."""

    def read(row: Row) -> bytes | None:
        record = _record(store, row.last)
        if isinstance(record, Moved):
            record = _newest(record.records, (Ack,))
        if isinstance(record, Ack) and isinstance(record.result, Raw):
            return bytes(record.result)
        return None

    return _reading(store, row, read)


def fingerprint(store: Store, position: int, row: Row) -> str:
    """Return what tells the payload of a job from another, also of a forgotten one.

    "" if its record is damaged. See :func:`print_of`.
    """

    def read(row: Row) -> str:
        if row.state == states.FORGOTTEN:
            record = _record(store, row.last)
        else:
            record = _record(store, row.data, row.size)
        if isinstance(record, Forget):
            return dict(zip(record.jobs, record.prints, strict=False)).get(position, "")
        if isinstance(record, Moved):
            if record.print:
                return record.print
            record = _newest(record.records[:1], (Enqueue,))
        if isinstance(record, Enqueue):
            return print_of(record.kind, bytes(record.payload))
        return ""

    # By its number, because a forgotten job is found by nothing else.
    return _reading(store, row, read, lambda tables: tables.row(position)) or ""


def print_of(kind: str, text: bytes) -> str:
    """Return the fingerprint of a payload: BLAKE2b of 8 bytes, as hexadecimal digits.

    It is that of the value: neither the order of keys nor the way in which a number is
    spelt makes a difference. Of what Python cannot read it is that of the text.
    """
    name = kind.encode("utf-8", "surrogatepass")
    with suppress(ValueError, RecursionError):
        text = dumps(loads(text), sort_keys=True, separators=(",", ":")).encode()
    return blake2b(name + b"\0" + text, digest_size=8).hexdigest()


def _record(
    store: Store, position: int, size: int | None = None
) -> AnyRecord | Unknown | None:
    log = store.log
    found = log.record_at(position) if size is None else log.record_at(position, size)
    return None if found is None else found[0]


def _newest(
    records: Sequence[Raw], kinds: tuple[type[AnyRecord], ...]
) -> AnyRecord | None:
    for raw in reversed(records):
        found = framing.decode_body(bytes(raw))
        if isinstance(found, kinds):
            return found
    return None


def _again(store: Store, row: Row) -> Row | None:
    found = store.look(lambda tables: tables.find(row.id, row.queue))
    return None if found is None else found[1]


def _reading(
    store: Store,
    row: Row,
    read: Callable[[Row], T | None],
    look: Callable[[Tables], Row | None] | None = None,
) -> T | None:
    try:
        return read(row)
    except DroppedError:
        again = _again(store, row) if look is None else store.look(look)
        return None if again is None else read(again)
