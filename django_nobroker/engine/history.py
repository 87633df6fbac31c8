"""What happened to one job, read back from its records.

Each record of a job names the one before, so the history is a walk backwards
through the log, and costs the index nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Raw

from .record import Ack, AnyRecord, Dead, Enqueue, Failure, JobRecord, Nack
from .states import Row
from .store import Store

#: A chain longer than this is cut: thousands of heartbeats tell nothing more.
LONGEST = 10_000


def backwards(store: Store, row: Row) -> Iterator[AnyRecord]:
    """Yield the records of a job, newest first; a damaged one ends the walk."""
    position = row.last
    for _ in range(LONGEST):
        found = store.log.record_at(position)
        if found is None or not isinstance(found[0], JobRecord | Enqueue):
            return
        record = found[0]
        yield record
        if isinstance(record, Enqueue):
            return
        position = record.prev


def failure_at(store: Store, position: int) -> tuple[Failure, str] | None:
    """Return error and reason of the failure recorded there, None if unreadable."""
    found = store.log.record_at(position)
    if found is not None and isinstance(found[0], Nack | Dead):
        record = found[0]
        return record.error, record.reason if isinstance(record, Dead) else ""
    return None


def payload(store: Store, row: Row) -> bytes | None:
    """Return the payload's JSON text; None if its record is damaged."""
    found = store.log.record_at(row.data, row.size)
    if found is None or not isinstance(found[0], Enqueue):
        return None
    return bytes(found[0].payload)


def result(store: Store, row: Row) -> bytes | None:
    """Return the JSON text of a finished job's result, None if it has none."""
    found = store.log.record_at(row.last)
    if found is None or not isinstance(found[0], Ack):
        return None
    value = found[0].result
    return bytes(value) if isinstance(value, Raw) else None
