"""Rows of the index and records of the log as the values of the seam."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .engine import history
from .engine.record import (
    Ack,
    Dead,
    Enqueue,
    Failure,
    JobRecord,
    Lease,
    Nack,
    Release,
)
from .engine.states import Row
from .engine.store import Store
from .engine.tables import Tables
from .seam import AttemptView, Error, JobView, State

STATES = (State.READY, State.LEASED, State.DONE, State.DEAD, State.DISCARDED)
_DAMAGED = Error(type="DamagedRecord", message="the record of this error is damaged")


def attempts(records: Sequence[JobRecord | Enqueue]) -> Iterator[AttemptView]:
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


def job_view(store: Store, tables: Tables, position: int, row: Row) -> JobView:
    """Return one job as lists and pages show it."""
    error, reason = None, ""
    if row.error:
        found = history.failure(store, row)
        error, reason = (as_error(found[0]), found[1]) if found else (_DAMAGED, "")
    return JobView(
        id=row.id,
        position=position,
        queue=tables.names.queues[row.queue],
        kind=tables.names.kinds[row.kind] or None,
        state=STATES[row.state],
        priority=row.priority,
        attempts=row.attempts,
        max_attempts=row.max_attempts,
        enqueued_at=row.enqueued_at,
        available_at=row.available_at,
        started_at=row.started_at or None,
        last_attempted_at=row.attempted_at or None,
        finished_at=row.finished_at or None,
        error=error,
        reason=reason,
    )
