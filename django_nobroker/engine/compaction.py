"""Compaction: the log gives back what nobody needs any more.

Segments leave from the head only. Whatever job of them is needed still is written
again at the end, with its state and its past (``moved``); a durable ``drop`` record
says from where on the log counts; then the segments are removed, oldest first.
Killed anywhere, the log is whole: before the ``drop`` nothing is missing, after it
an opening removes what is left over. Everybody goes on meanwhile: jobs are moved in
slices, and only a slice is written under the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import msgspec

from . import keys, retention, segment, setaside
from .control import LOW, SEGMENT
from .errors import CompactionError
from .locks import Maintenance
from .past import Past, past
from .record import Drop, Moved
from .replica import Progress, unwatched
from .retention import Retention
from .states import Row
from .store import Store
from .tables import Tables
from .transaction import Transaction

#: Jobs, and bytes, that are written again under one hold of the lock.
_SLICE, _SLICE_BYTES = 200, 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """What a compaction did; sizes in bytes of the log."""

    bytes_before: int
    bytes_after: int
    kept: int  # jobs that are in the store still
    dropped: int  # ended jobs that were taken out, or all but their ids
    moved: int  # jobs that were written again
    segments: int  # files that were removed
    seconds: float

    def describe(self) -> str:
        """Return one readable line."""
        saved = self.bytes_before - self.bytes_after
        share = 100 * saved / self.bytes_before if self.bytes_before else 0.0
        return (
            f"compacted {self.bytes_before} -> {self.bytes_after} bytes "
            f"({share:.1f}% reclaimed), kept {self.kept} jobs, "
            f"dropped {self.dropped} completed"
        )

    def to_dict(self) -> dict[str, object]:
        """Return plain values, as JSON has them."""
        plain: dict[str, object] = msgspec.json.decode(msgspec.json.encode(self))
        return plain


def compact(
    store: Store,
    kept: Retention,
    *,
    timeout: float,
    roll: bool = True,
    stopped: Callable[[], bool] = lambda: False,
    progress: Progress = unwatched,
) -> CompactionResult:
    """Take ended jobs out and remove the segments that only they needed.

    With ``roll`` a new segment is begun first, so that all of the log counts, not
    only its full segments. ``stopped`` is asked between slices; what was done until
    then stays. ``progress`` is told bytes. Raises ``CompactionError`` when somebody
    reads the whole log just now (a backup, a verification) or when it holds records
    of a newer version; then nothing was changed.
    """
    clock = store.clock
    began = clock.monotonic()
    with Maintenance(store.directory, store.vfs, clock).exclusive() as alone:
        if not alone:
            msg = (
                "The log is being backed up, verified or compacted just now; "
                "nothing was changed. Try again when that is done."
            )
            raise CompactionError(msg)
        store.look(_refuse_unknown)
        before = _size(store)
        dropped = retention.expire(store, kept, timeout=timeout, stopped=stopped)
        if roll:
            assert store.writer is not None
            store.writer.roll(timeout)
        head = _Head(store, timeout, stopped, progress)
        segments = head.drop() if head.move() else 0
        return CompactionResult(
            bytes_before=before,
            bytes_after=_size(store),
            kept=store.look(_jobs),
            dropped=dropped,
            moved=head.moved,
            segments=segments,
            seconds=clock.monotonic() - began,
        )


def _refuse_unknown(tables: Tables) -> None:
    unknown = tables.meta.unknown
    if unknown:
        msg = (
            f"The log holds operations of a newer version ({', '.join(sorted(unknown))}) "
            "that a compaction would lose: upgrade django-nobroker. Nothing was dropped."
        )
        raise CompactionError(msg)


def _size(store: Store) -> int:
    return sum(size for _, size in segment.sizes(store.directory, store.vfs))


def _jobs(tables: Tables) -> int:
    numbers = range(len(tables.names.queues))
    return sum(sum(tables.counts(one)[: keys.FORGOTTEN_SLOT]) for one in numbers)


class _Head:
    """The segments before the active one, on their way out."""

    def __init__(
        self,
        store: Store,
        timeout: float,
        stopped: Callable[[], bool],
        progress: Progress,
    ) -> None:
        assert store.control is not None
        self._store = store
        self._words = store.control.words
        self._timeout = timeout
        self._stopped = stopped
        self._progress = progress
        self._end = int(self._words[SEGMENT])
        self.moved = 0

    def move(self) -> bool:
        """Write every job again that is in the head still; False if it was stopped."""
        first, after, found = self._store.log.first, -1, False
        self._progress(0, self._end - first)
        while not self._stopped():
            part = self._next(after)
            if not part:
                if not found:
                    return True
                # Those that changed while their past was read were left out.
                after, found = -1, False
                continue
            self._move(part)
            after, found = part[-1][0], True
            self._progress(max(0, after - first), self._end - first)
        return False

    def _next(self, after: int) -> list[tuple[int, Row]]:
        return self._store.look(
            lambda tables: list(islice(self._needed(tables, after), _SLICE))
        )

    def _needed(self, tables: Tables, after: int) -> Iterator[tuple[int, Row]]:
        for entry in tables.entries(keys.JOB, start=keys.job(after + 1)):
            position = keys.position_of(entry)
            if position >= self._end:
                return
            row = tables.row(position)
            if row is not None and row.data < self._end:
                yield position, row

    def _move(self, part: list[tuple[int, Row]]) -> None:
        """Write jobs again, reading their past before the lock is taken."""
        slices: list[tuple[int, Row, Past]] = []
        size = 0
        for position, row in part:
            kept = past(self._store, position, row)
            if slices and size + kept.size > _SLICE_BYTES:
                self._write(slices)
                slices, size = [], 0
            slices.append((position, row, kept))
            size += kept.size
        self._write(slices)

    def _write(self, jobs: list[tuple[int, Row, Past]]) -> None:
        def decide(transaction: Transaction) -> int:
            changes = transaction.changes
            records = []
            for position, seen, kept in jobs:
                row = changes.row(position)
                if row is not None and row.last == seen.last:
                    given = changes.scope_of(position, row)
                    records.append(
                        _snapshot(changes, position, row, kept, given, transaction)
                    )
            if records:
                transaction.add(records)
                # A full disk refuses this like an enqueue: what is free is kept
                # for finishing the jobs that are in the queue.
                transaction.grows = True
            return len(records)

        self.moved += self._store.run(decide, durable=False, timeout=self._timeout)

    def drop(self) -> int:
        """Say that the head counts no more, and remove it; return its segments."""
        store = self._store
        if store.log.first >= self._end:
            return 0
        self._keep_damaged()
        store.commit(store.end)

        def decide(transaction: Transaction) -> None:
            changes = transaction.changes
            # Somebody of a newer version may have written meanwhile.
            _refuse_unknown(changes)
            changes.flush()
            totals = {
                name: list(changes.totals(number))
                for number, name in enumerate(changes.names.queues)
            }
            wall = transaction.clock.wall()
            # Twice: it is the one record whose damage would cost more than itself.
            for _ in range(2):
                drop = Drop(before=self._end, t=wall, totals=totals)
                transaction.add([drop])

        store.run(decide, durable=True, timeout=self._timeout)

        def publish(_transaction: Transaction) -> None:
            self._words[LOW] = self._end

        store.run(publish, durable=False, timeout=self._timeout, indexed=False)
        return segment.remove_before(store.directory, self._end, store.vfs)

    def _keep_damaged(self) -> None:
        store = self._store
        kept = {one.start for one in setaside.listing(store.directory, store.vfs)}
        for start, end in store.look(lambda tables: list(tables.meta.damage)):
            if start in kept or start >= self._end:
                continue
            data = store.log.read_range(start, end)
            if data:
                setaside.keep(
                    store.directory,
                    start,
                    data,
                    store.vfs,
                    store.access,
                    why=setaside.DAMAGED,
                )


def _snapshot(
    tables: Tables,
    position: int,
    row: Row,
    kept: Past,
    given: str,
    transaction: Transaction,
) -> Moved:
    names = tables.names
    return Moved(
        job=position,
        prev=row.last,
        t=transaction.clock.wall(),
        id=row.id,
        given=given,
        queue=names.queues[row.queue],
        kind=names.kinds[row.kind],
        priority=row.priority,
        enqueued=row.enqueued_at,
        available=row.available_at,
        max=row.max_attempts,
        timer=row.timer,
        state=row.state,
        attempts=row.attempts,
        until=row.until,
        generation=row.generation,
        epoch=row.epoch,
        token=row.token,
        started=row.started_at,
        attempted=row.attempted_at,
        finished=row.finished_at,
        failed=row.error != 0,
        omitted=kept.omitted,
        print=kept.print,
        records=kept.records,
    )
