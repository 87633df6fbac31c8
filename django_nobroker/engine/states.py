"""What each record does to a job: the transition table (pure).

Replay is a pure function of the log: nothing here reads a clock, draws a random
number or makes an id. The same functions serve the writer, catching up,
rebuilding and verifying.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from .lease import Token
from .record import (
    Ack,
    Dead,
    Discard,
    Enqueue,
    Extend,
    JobRecord,
    Lease,
    Moved,
    Nack,
    Release,
    Requeue,
)

# Forgotten is a job of which only the given id is left, so that it blocks another.
READY, LEASED, DONE, DEAD, DISCARDED, FORGOTTEN = range(6)
STATES = 6
ENDED = (DONE, DEAD, DISCARDED)

# Which clock a ready job waits for.
DUE, WALL, BOOT = range(3)


class Row(Struct, array_like=True, gc=False):
    """What the index knows of one job: enough to choose it and to show it.

    Bodies stay in the log: ``data`` and ``size`` say where the payload's record
    is, ``last`` where the newest record, ``error`` where the newest failure (0 = none).
    ``weight`` is how many bytes of the log a compaction would keep for it, about.
    """

    id: str
    queue: int
    kind: int
    priority: int
    enqueued_at: float
    available_at: float  # wall clock; orders the ready jobs of one priority
    max_attempts: int
    timer: int  # which clock it waits for: DUE, WALL or BOOT
    data: int
    size: int
    last: int
    weight: int
    state: int = READY
    attempts: int = 0
    # Boot clock: end of the lease, or of the delay when the timer is BOOT.
    until: float = 0.0
    generation: int = 0  # the boot that ``until`` belongs to
    epoch: int = 0
    token: int = 0  # position of the current, or the completing, lease
    error: int = 0
    started_at: float = 0.0
    attempted_at: float = 0.0
    finished_at: float = 0.0

    @property
    def lease_token(self) -> Token:
        """The fencing token of the newest lease."""
        return Token(self.epoch, self.token)


def enqueued(record: Enqueue, *, queue: int, kind: int, size: int) -> Row:
    """Return the row of a new job."""
    # Positional, in the order of the fields: half the cost, once for every job.
    return Row(
        record.id,
        queue,
        kind,
        record.priority,
        record.t,
        record.due or record.t,
        record.max,
        WALL if record.due else DUE,
        record.at,
        size,
        record.at,
        size,
    )


def moved(record: Moved, *, queue: int, kind: int, size: int) -> Row:
    """Return the row of a job that was written again, whatever was known of it."""
    return Row(
        record.id,
        queue,
        kind,
        record.priority,
        record.enqueued,
        record.available,
        record.max,
        record.timer,
        record.at,
        size,
        record.at,
        size,
        record.state,
        record.attempts,
        record.until,
        record.generation,
        record.epoch,
        record.token,
        record.at if record.failed else 0,
        record.started,
        record.attempted,
        record.finished,
    )


def forget(row: Row, at: int, size: int) -> bool:
    """Let an ended job's body go; ``size`` is its part of the record at ``at``.

    ``data`` stays: the record at ``at`` does not tell all of the job, so a compaction
    that drops the one there has to write the job again.
    """
    if row.state not in ENDED:
        return False
    row.state = FORGOTTEN
    row.last = at
    row.weight = size
    row.error = 0
    return True


#: Lets a record happen to a job; False if it does not fit the job's state.
Change = Callable[[Row, Any, int, int], bool]


def apply(row: Row, record: JobRecord, *, epoch: int, generation: int) -> bool:
    """Let a record happen to a job; False if it does not fit the job's state.

    ``epoch`` and ``generation`` are those of the log at that place. The writer
    checked before it wrote, so a record that does not fit means that one before it
    was lost to damage. Whatever still makes sense is applied, the rest is counted
    and skipped: one damaged record never stops the others.
    """
    return CHANGES[type(record)](row, record, epoch, generation)


def _lease(row: Row, record: Lease, epoch: int, generation: int) -> bool:
    if row.state in (DONE, DISCARDED, FORGOTTEN):
        return False
    row.state = LEASED
    row.timer = DUE
    row.attempts = record.attempt
    row.until = record.until
    row.generation = generation
    row.epoch = epoch
    row.token = row.last = record.at
    row.attempted_at = record.t
    row.started_at = row.started_at or record.t
    return True


def _extend(row: Row, record: Extend, _epoch: int, generation: int) -> bool:
    if row.state != LEASED:
        return False
    row.until = record.until
    row.generation = generation
    row.last = record.at
    return True


def _ack(row: Row, record: Ack, _epoch: int, _generation: int) -> bool:
    if row.state not in (LEASED, READY):
        return False
    row.state = DONE
    row.timer = DUE
    row.finished_at = record.t
    row.last = record.at
    return True


def _nack(row: Row, record: Nack, _epoch: int, generation: int) -> bool:
    if row.state not in (LEASED, READY):
        return False
    row.state = READY
    row.available_at = record.t + record.delay
    row.timer = BOOT if record.delay > 0 else DUE
    row.until = record.until
    row.generation = generation
    row.token = 0
    row.error = row.last = record.at
    return True


def _dead(row: Row, record: Dead, _epoch: int, _generation: int) -> bool:
    if row.state not in (LEASED, READY):
        return False
    row.state = DEAD
    row.timer = DUE
    row.error = row.last = record.at
    row.finished_at = record.t
    return True


def _release(row: Row, record: Release, _epoch: int, _generation: int) -> bool:
    if row.state != LEASED:
        return False
    row.state = READY
    row.timer = DUE
    row.attempts -= 1
    row.token = 0
    row.last = record.at
    return True


def _requeue(row: Row, record: Requeue, _epoch: int, _generation: int) -> bool:
    if row.state != DEAD:
        return False
    row.state = READY
    row.timer = DUE
    row.attempts = 0
    row.available_at = record.t
    row.finished_at = 0.0
    row.token = 0
    row.error = 0
    row.last = record.at
    return True


def _discard(row: Row, record: Discard, _epoch: int, _generation: int) -> bool:
    if row.state not in (DEAD, READY):
        return False
    row.state = DISCARDED
    row.timer = DUE
    row.finished_at = record.t
    row.last = record.at
    return True


#: By operation; a replay looks its functions up here itself.
CHANGES: dict[type, Change] = {
    Lease: _lease,
    Extend: _extend,
    Ack: _ack,
    Nack: _nack,
    Dead: _dead,
    Release: _release,
    Requeue: _requeue,
    Discard: _discard,
}
