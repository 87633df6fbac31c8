"""Which of a job's records a compaction keeps: payload, result, last error, newest past."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import Raw

from . import framing, states
from .changes import HISTORY
from .history import LONGEST, fingerprint
from .record import Ack, Dead, Enqueue, Extend, JobRecord, Moved, Nack
from .states import Row
from .store import Store

#: Of a job's past so many records stay, beside its enqueue, result and last error.
_RECORDS = 100


@dataclass(slots=True)
class Past:
    """What is kept of a job's records: the enqueue first, then the newest.

    ``omitted`` tells that some in between are not; ``print`` is the payload's
    fingerprint where there is no enqueue any more; ``size`` is in bytes.
    """

    records: list[Raw]
    omitted: bool
    print: str
    size: int


def past(store: Store, position: int, row: Row) -> Past:
    """Return what is kept of a job; heartbeats are left out.

    Raises ``DroppedError`` if somebody else compacts meanwhile.
    """
    if row.state == states.FORGOTTEN:
        return Past([], omitted=True, print=fingerprint(store, position, row), size=0)
    enqueue: Raw | None = None
    newest: list[Raw] = []
    size = 0
    omitted = False
    failure_missing = row.error != 0
    for walked, (record, body) in enumerate(_bodies(store, row)):
        if isinstance(record, Enqueue):
            enqueue = body
            break
        if isinstance(record, Extend):
            continue
        failure = isinstance(record, Nack | Dead) and failure_missing
        room = len(newest) < _RECORDS and size + len(bytes(body)) <= HISTORY
        if room or failure or isinstance(record, Ack):
            newest.append(body)
            size += len(bytes(body))
            failure_missing = failure_missing and not failure
        else:
            omitted = True
        if walked >= LONGEST or (omitted and not failure_missing):
            omitted = True
            break
    if enqueue is None:
        enqueue = _enqueue(store, row)
    records = [*([enqueue] if enqueue is not None else []), *reversed(newest)]
    return Past(records, omitted, "", sum(len(bytes(one)) for one in records))


def _bodies(store: Store, row: Row) -> Iterator[tuple[JobRecord | Enqueue, Raw]]:
    """Yield the records of a job and their JSON texts, newest first."""
    position = row.last
    while True:
        found = store.log.record_at(position)
        if found is None:
            return
        record, line = found
        if isinstance(record, Moved):
            for raw in reversed(record.records):
                one = framing.decode_body(bytes(raw))
                if isinstance(one, JobRecord | Enqueue):
                    yield one, raw
            return
        if not isinstance(record, JobRecord | Enqueue):
            return
        yield record, Raw(line[framing.HEADER : -1])
        if isinstance(record, Enqueue):
            return
        position = record.prev


def _enqueue(store: Store, row: Row) -> Raw | None:
    """Return the text of the enqueue, which the index finds without the walk."""
    found = store.log.record_at(row.data, row.size)
    if found is None:
        return None
    if isinstance(found[0], Enqueue):
        return Raw(found[1][framing.HEADER : -1])
    if isinstance(found[0], Moved) and found[0].records:
        raw = found[0].records[0]
        if isinstance(framing.decode_body(bytes(raw)), Enqueue):
            return raw
    return None
