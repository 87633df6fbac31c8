"""A job's records as the deliveries that people think in (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .engine.record import (
    Ack,
    AnyRecord,
    Dead,
    Failure,
    JobRecord,
    Lease,
    Nack,
    Release,
)
from .seam import AttemptView, Error


def attempts(records: Sequence[AnyRecord]) -> Iterator[AttemptView]:
    """Turn a job's records, oldest first, into its deliveries."""
    lease: Lease | None = None
    for record in records:
        if isinstance(record, Lease):
            if lease is not None:  # the record that ended it was damaged
                yield _attempt(lease, "lost", None)
            lease = record
        elif lease is not None and isinstance(record, Ack | Nack | Dead | Release):
            yield _attempt(lease, _outcome(record), record)
            lease = None
    if lease is not None:
        yield _attempt(lease, "running", None)


def _outcome(record: JobRecord) -> str:
    if isinstance(record, Ack):
        return "done"
    if isinstance(record, Release):
        return "released"
    lost = isinstance(record, Nack) and record.lost
    lost = lost or (isinstance(record, Dead) and record.reason == "lost")
    return "lost" if lost else "failed"


def _attempt(lease: Lease, outcome: str, end: JobRecord | None) -> AttemptView:
    return AttemptView(
        number=lease.attempt,
        worker=lease.worker,
        started_at=lease.t,
        finished_at=None if end is None else end.t,
        outcome=outcome,
        error=as_error(end.error) if isinstance(end, Nack | Dead) else None,
    )


def as_error(failure: Failure) -> Error:
    """Return the failure of a record as the seam's value."""
    return Error(
        type=failure.type, message=failure.message, traceback=failure.traceback
    )
