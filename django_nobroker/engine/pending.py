"""Rows of the index that were changed in memory, and how they are written.

The rows that a stretch of the log touches are gathered here, and each row, order
entry and counter is written once, in the LMDB transaction that also says how far
the log is applied.
"""

from __future__ import annotations

import lmdb
import msgspec

from . import keys
from .states import Row
from .tables import COUNTS, Tables, decode_row

_encode = msgspec.msgpack.Encoder().encode


class Pending(Tables):
    """What was changed but is not in the transaction before ``flush``."""

    txn: lmdb.Transaction

    def __init__(self, txn: lmdb.Transaction) -> None:
        super().__init__(txn)
        self._rows: dict[int, Row] = {}
        # What the transaction holds of the rows that were read: entry, counter,
        # weight, bytes.
        self._before: dict[int, tuple[bytes, int, int, bytes | memoryview]] = {}
        self._ids: dict[bytes, int] = {}
        self._purged: dict[int, Row] = {}
        self._totals: dict[int, list[int]] = {}
        self._queues = {name: number for number, name in enumerate(self.names.queues)}
        self._kinds = {name: number for number, name in enumerate(self.names.kinds)}
        self._new_names = False

    # --- reading what is not flushed yet ------------------------------------

    def row(self, position: int) -> Row | None:
        """Return the job as it is with everything applied so far."""
        row = self._rows.get(position)
        if row is None and position not in self._purged:
            raw = self.txn.get(keys.job(position))
            if raw is not None:
                row = self._rows[position] = decode_row(raw)
                place = keys.place(row, position)
                self._before[position] = (*place, row.weight, raw)
        return row

    def given(self, scope: int, job_id: str) -> tuple[int, Row] | None:
        """Return the job that was enqueued under a given id, not flushed ones included."""
        position = self._ids.get(keys.given_id(scope, job_id))
        if position is None:
            return super().given(scope, job_id)
        row = self.row(position)
        return None if row is None else (position, row)

    # --- changing -----------------------------------------------------------

    def _queue(self, name: str) -> int:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = len(self.names.queues)
            self.names.queues.append(name)
            self._new_names = True
        return queue

    def _kind(self, name: str) -> int:
        kind = self._kinds.get(name)
        if kind is None:
            kind = self._kinds[name] = len(self.names.kinds)
            self.names.kinds.append(name)
            self._new_names = True
        return kind

    def _total(self, queue: int) -> list[int]:
        totals = self._totals.get(queue)
        if totals is None:
            totals = self._totals[queue] = list(self.totals(queue))
        return totals

    # --- writing ------------------------------------------------------------

    def flush(self) -> None:
        """Write what was applied into the transaction; what was only read stays."""
        txn = self.txn
        if self._rows or self._purged or self._totals:
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
        counts = {
            queue: [*self.counts(queue), *totals]
            for queue, totals in self._totals.items()
        }
        before = self._before
        live = 0
        for position, row in self._purged.items():
            old = before.get(position)
            if old is not None:
                live -= old[2]
                self._counters(counts, row.queue)[old[1]] -= 1
                txn.delete(old[0])
                txn.delete(keys.job(position))
                self._release(row, position)
        entries: list[tuple[bytes, bytes]] = []
        rows: list[tuple[bytes, bytes]] = []
        for position, row in sorted(self._rows.items()):
            old = before.get(position)
            data = _encode(row)
            if old is not None and old[3] == data:
                continue
            rows.append((keys.job(position), data))
            entry, slot = keys.place(row, position)
            live += row.weight
            if old is None:
                self._counters(counts, row.queue)[slot] += 1
                entries.append((entry, b""))
                continue
            live -= old[2]
            if old[0] != entry:
                count = self._counters(counts, row.queue)
                count[old[1]] -= 1
                count[slot] += 1
                txn.delete(old[0])
                entries.append((entry, b""))
        self.meta.live += live
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
        self._purged.clear()
        self._totals.clear()
        before.clear()

    def _counters(self, counts: dict[int, list[int]], queue: int) -> list[int]:
        count = counts.get(queue)
        if count is None:
            count = counts[queue] = list(self.numbers(queue))
        return count

    def _release(self, row: Row, position: int) -> None:
        value = position.to_bytes(8, "big")
        for scope in (row.queue, keys.STORE_WIDE):
            key = keys.given_id(scope, row.id)
            if self.txn.get(key) == value:
                self.txn.delete(key)
