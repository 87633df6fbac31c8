"""Which of a job's records a compaction keeps: payload, result, last error, newest past."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from msgspec import Raw

from . import framing, states
from .changes import HISTORY
from .history import LONGEST, chain, fingerprint
from .record import Ack, Dead, Enqueue, Extend, Moved, Nack
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
    omitted = failed = False
    for record, body in islice(chain(store, row.last), LONGEST):
        if isinstance(record, Enqueue):
            enqueue = body
            break
        if isinstance(record, Moved):
            omitted = record.omitted
        elif not isinstance(record, Extend):
            room = len(newest) < _RECORDS and size + len(bytes(body)) <= HISTORY
            if not room and not isinstance(record, Ack):
                break
            newest.append(body)
            size += len(bytes(body))
            failed = failed or isinstance(record, Nack | Dead)
    if enqueue is None:
        omitted = True
        enqueue = _enqueue(store, row)
    # The walk ended before it came to the error: the index knows where that is.
    error = _error(store, row) if row.error and not failed else None
    ends = [one for one in (enqueue, error) if one is not None]
    records = [*ends, *reversed(newest)]
    return Past(records, omitted, "", sum(len(bytes(one)) for one in records))


def _error(store: Store, row: Row) -> Raw | None:
    """Return the text of the newest failure, which the index finds without the walk."""
    for record, body in chain(store, row.error):
        if isinstance(record, Nack | Dead):
            return body
    return None


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
