"""Letting records happen to the index, within one LMDB transaction.

The rows that a stretch of the log touches are gathered, the records applied in
memory, and each row, order entry and counter is written once. The position up
to which the log is applied is written in the same transaction, always.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import lmdb
import msgspec

from . import keys, states
from .framing import Damage
from .record import AnyRecord, Enqueue, Open, SegmentStart, Unknown
from .states import Row
from .tables import COUNTS, Tables, decode_row

_encode = msgspec.msgpack.Encoder().encode
_KEPT_DAMAGE = 1000


class Changes(Tables):
    """Letting records happen; nothing is in the transaction before ``flush``."""

    txn: lmdb.Transaction

    def __init__(self, txn: lmdb.Transaction) -> None:
        super().__init__(txn)
        self._rows: dict[int, Row] = {}
        # What the transaction holds of the rows that were read: entry, counter, bytes.
        self._before: dict[int, tuple[bytes, int, bytes | memoryview]] = {}
        self._ids: dict[bytes, int] = {}
        self._queues = {name: number for number, name in enumerate(self.names.queues)}
        self._kinds = {name: number for number, name in enumerate(self.names.kinds)}
        self._new_names = False
        self._holes: list[tuple[int, int]] = []

    # --- reading what is not flushed yet ------------------------------------

    def row(self, position: int) -> Row | None:
        """Return the job as it is with everything applied so far."""
        row = self._rows.get(position)
        if row is None:
            raw = self.txn.get(keys.job(position))
            if raw is not None:
                row = self._rows[position] = decode_row(raw)
                self._before[position] = (*keys.place(row, position), raw)
        return row

    def given(self, scope: int, job_id: str) -> tuple[int, Row] | None:
        """Return the job that was enqueued under a given id, not flushed ones included."""
        position = self._ids.get(keys.given_id(scope, job_id))
        if position is None:
            return super().given(scope, job_id)
        row = self.row(position)
        return None if row is None else (position, row)

    # --- applying -----------------------------------------------------------

    def apply(
        self, records: Sequence[AnyRecord | Unknown], sizes: Sequence[int]
    ) -> None:
        """Let whole transactions happen, in the order of the log."""
        meta = self.meta
        rows = self._rows
        changes = states.CHANGES
        for record, size in zip(records, sizes, strict=True):
            change = changes.get(type(record))
            if change is not None:
                job = record.job  # type: ignore[union-attr]  # all in the table have one
                row = rows.get(job) or self.row(job)
                if row is None or not change(row, record, meta.epoch, meta.generation):
                    meta.orphans += 1
            elif isinstance(record, Enqueue):
                self._enqueue(record, size)
            elif isinstance(record, Open | SegmentStart):
                self._begin(record)
            else:
                name = str(record.op)  # type: ignore[union-attr]
                meta.unknown[name] = meta.unknown.get(name, 0) + 1

    def _enqueue(self, record: Enqueue, size: int) -> None:
        queue = self._queues.get(record.queue)
        if queue is None:
            queue = self._queues[record.queue] = len(self.names.queues)
            self.names.queues.append(record.queue)
            self._new_names = True
        kind = self._kinds.get(record.kind)
        if kind is None:
            kind = self._kinds[record.kind] = len(self.names.kinds)
            self.names.kinds.append(record.kind)
            self._new_names = True
        self._rows[record.at] = states.enqueued(
            record, queue=queue, kind=kind, size=size
        )
        if record.given:
            scope = queue if record.given == "queue" else keys.STORE_WIDE
            self._ids[keys.given_id(scope, record.id)] = record.at

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

    def flush(self) -> None:
        """Write what was applied into the transaction; what was only read stays."""
        txn = self.txn
        if self._rows:
            self._flush_rows()
        if self._new_names:
            txn.put(keys.NAMES, _encode(self.names))
            self._new_names = False
        meta = _encode(self.meta)
        if meta != self._stored_meta:
            txn.put(keys.META, meta)
            self._stored_meta = meta

    def _flush_rows(self) -> None:
        txn = self.txn
        counts: dict[int, list[int]] = {}
        before = self._before
        entries: list[tuple[bytes, bytes]] = []
        rows: list[tuple[bytes, bytes]] = []
        for position, row in sorted(self._rows.items()):
            old = before.get(position)
            data = _encode(row)
            if old is not None and old[2] == data:
                continue
            rows.append((keys.job(position), data))
            entry, slot = keys.place(row, position)
            count = counts.get(row.queue)
            if count is None:
                count = counts[row.queue] = list(self.counts(row.queue))
            if old is None:
                count[slot] += 1
                entries.append((entry, b""))
            elif old[0] != entry:
                count[old[1]] -= 1
                count[slot] += 1
                txn.delete(old[0])
                entries.append((entry, b""))
        entries.sort()
        with txn.cursor() as cursor:
            cursor.putmulti(entries)
            cursor.putmulti(rows)
            cursor.putmulti(
                [
                    (keys.counts(queue), COUNTS.pack(*count))
                    for queue, count in counts.items()
                ]
                + [
                    (key, position.to_bytes(8, "big"))
                    for key, position in self._ids.items()
                ]
            )
        self._ids.clear()
        self._rows.clear()
        before.clear()
