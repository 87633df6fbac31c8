"""Letting records happen to the index, within one LMDB transaction.

The rows that a stretch of the log touches are gathered, the records applied in
memory, and each row, order entry and counter is written once. The position up
to which the log is applied is written in the same transaction, always.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import lmdb

from . import keys, states, tables
from .framing import Damage
from .pending import Pending
from .record import (
    Ack,
    AnyRecord,
    Dead,
    Discard,
    Drop,
    Enqueue,
    Forget,
    Moved,
    Nack,
    Open,
    Purge,
    Requeue,
    SegmentStart,
    Unknown,
)
from .tables import TOTALS

_KEPT_DAMAGE = 1000
#: A compaction keeps so many bytes of a job's past beside its payload and result.
HISTORY = 64 * 1024
#: Which total of its queue an operation adds to.
_COUNTED: dict[type, int] = {
    Ack: tables.COMPLETED,
    Nack: tables.FAILED,
    Dead: tables.BURIED,
    Requeue: tables.REQUEUED,
    Discard: tables.DISCARDED,
}


class Changes(Pending):
    """Letting records happen; nothing is in the transaction before ``flush``."""

    def __init__(self, txn: lmdb.Transaction) -> None:
        super().__init__(txn)
        self._holes: list[tuple[int, int]] = []

    def apply(
        self, records: Sequence[AnyRecord | Unknown], sizes: Sequence[int]
    ) -> None:
        """Let whole transactions happen, in the order of the log."""
        meta = self.meta
        rows = self._rows
        changes = states.CHANGES
        counted = _COUNTED
        for record, size in zip(records, sizes, strict=True):
            kind = type(record)
            change = changes.get(kind)
            if change is not None:
                job = record.job  # type: ignore[union-attr]  # all in the table have one
                row = rows.get(job) or self.row(job)
                if row is None:
                    # Of a job from before the log's beginning nothing was known
                    # until it was written again.
                    meta.orphans += job >= meta.first
                elif not change(row, record, meta.epoch, meta.generation):
                    meta.orphans += 1
                else:
                    if row.weight < row.size + HISTORY or kind is Ack:
                        row.weight += size
                    if kind in counted:
                        self._total(row.queue)[counted[kind]] += 1
            elif isinstance(record, Enqueue):
                self._enqueue(record, size)
            else:
                self._apply_seldom(record, size)

    def _apply_seldom(self, record: AnyRecord | Unknown, size: int) -> None:
        meta = self.meta
        if isinstance(record, Open | SegmentStart):
            self._begin(record)
        elif isinstance(record, Moved):
            self._move(record, size)
        elif isinstance(record, Purge):
            for job in record.jobs:
                self._purge(job)
        elif isinstance(record, Forget):
            part = size // max(1, len(record.jobs))
            for job in record.jobs:
                row = self.row(job)
                if row is None:
                    meta.orphans += job >= meta.first
                elif not states.forget(row, record.at, part):
                    meta.orphans += 1
        elif isinstance(record, Drop):
            meta.low = record.before
            meta.damage = [one for one in meta.damage if one[1] > meta.low]
            for name, totals in record.totals.items():
                self._totals[self._queue(name)] = totals[:TOTALS]
        else:
            name = str(record.op)  # type: ignore[union-attr]
            meta.unknown[name] = meta.unknown.get(name, 0) + 1

    def _enqueue(self, record: Enqueue, size: int) -> None:
        queue = self._queue(record.queue)
        self._rows[record.at] = states.enqueued(
            record, queue=queue, kind=self._kind(record.kind), size=size
        )
        self._total(queue)[tables.ENQUEUED] += 1
        self._give(record, queue, record.at)

    def _move(self, record: Moved, size: int) -> None:
        # Read first, so that its old entry is known when it is written.
        known = self.row(record.job)
        queue = self._queue(record.queue)
        self._rows[record.job] = states.moved(
            record, queue=queue, kind=self._kind(record.kind), size=size
        )
        if known is None:
            self._give(record, queue, record.job)

    def _give(self, record: Enqueue | Moved, queue: int, job: int) -> None:
        if record.given:
            scope = queue if record.given == "queue" else keys.STORE_WIDE
            self._ids[keys.given_id(scope, record.id)] = job

    def _purge(self, job: int) -> None:
        row = self.row(job)
        if row is None:
            self.meta.orphans += job >= self.meta.first
            return
        self._purged[job] = self._rows.pop(job)
        for scope in (row.queue, keys.STORE_WIDE):
            key = keys.given_id(scope, row.id)
            if self._ids.get(key) == job:
                del self._ids[key]

    def begin_at(self, first: int) -> None:
        """Follow the log from where it begins; what was before is nobody's concern."""
        self.meta.first = self.meta.applied = first

    def _begin(self, record: Open | SegmentStart) -> None:
        meta = self.meta
        meta.epoch = record.epoch
        if isinstance(record, SegmentStart):
            meta.boot, meta.generation = record.boot, record.generation
        elif record.boot != meta.boot:
            # Another start of the machine: everything timed by the boot clock of
            # the one before has run out, because its generation is lower.
            meta.boot, meta.generation = record.boot, record.epoch
        if isinstance(record, Open) and (record.cut or record.holes):
            meta.repair = (record.t, record.cut, len(record.holes))
            # Nobody was ever promised anything there, so it is no damage.
            self._holes += record.holes
            meta.damage = [one for one in meta.damage if not self._is_hole(*one)]

    def _is_hole(self, start: int, end: int) -> bool:
        return any(first <= start and end <= last for first, last in self._holes)

    def note_damage(self, damage: Iterable[Damage]) -> None:
        """Remember ranges that hold no record."""
        for start, end in damage:
            ranges = self.meta.damage
            if self._is_hole(start, end):
                continue
            if ranges and ranges[-1][1] == start:
                ranges[-1] = (ranges[-1][0], end)
            elif len(ranges) < _KEPT_DAMAGE:
                ranges.append((start, end))

    def mark(self, applied: int, last: int, total: str) -> None:
        """Say how far the log is applied, and with which record."""
        self.meta.applied = applied
        if last >= 0:
            self.meta.last = last
            self.meta.sum = total

    def make_due(self, position: int) -> None:
        """Let a job's waiting time be over; a change of the index alone."""
        row = self.row(position)
        if row is not None:
            row.timer = states.DUE
