"""One transaction under the lock: what a decision sees, adds and applies.

The lock is held by ``writer``; here nothing is written to a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from . import framing
from .changes import Changes
from .clock import Clock
from .control import ANY_QUEUE, DURABLE, END, EPOCH, ControlPage, waiting_slot
from .index import Index
from .record import AnyRecord, Enqueue
from .room import OWED_BY, Room


def woken(control: ControlPage, queue: str, clock: Clock) -> Collection[int]:
    """Return the slots whose sleepers a new job of that queue shall wake.

    They count as woken from then on, so the next job does not ring again. The
    caller holds the flock.
    """
    slot = waiting_slot(queue)
    if not control.is_anybody_waiting(slot):
        return ()
    now = clock.boot() * 1e6
    slots = [one for one in (slot, ANY_QUEUE) if control.waiting_until(one) > now]
    for one in (slot, ANY_QUEUE):
        control.set_waiting(one, 0)
    return slots


class Transaction:
    """What a decision sees and does while the store is locked."""

    def __init__(
        self, control: ControlPage, index: Index, room: Room, clock: Clock
    ) -> None:
        words = control.words
        self._control = control
        self._index = index
        self._room = room
        self._changes: Changes | None = None
        self._records: list[AnyRecord] = []
        self.clock = clock
        self.start: int = words[END]
        self.position = self.start
        self.durable: int = words[DURABLE]
        self.epoch: int = words[EPOCH]
        self.lines: list[bytes] = []
        self._called: set[str] = set()
        self.owed = 0  # how many more jobs are to be finished
        self.grows = False  # whether jobs are enqueued

    @property
    def changes(self) -> Changes:
        """The index, caught up with everything before and in this transaction."""
        if self._changes is None:
            changes = self._index.begin_changes()
            try:
                self._index.catch_changes_up(changes, self.start)
                if not self._room.is_known:
                    changes.flush()
                    self._room.know(changes.live_jobs())
                if self._records:
                    changes.apply(self._records, [len(line) for line in self.lines])
            except BaseException:
                # Half caught up it must not be marked with the end of the log.
                changes.txn.abort()
                raise
            self._changes = changes
        return self._changes

    def add(self, records: Sequence[AnyRecord]) -> list[bytes]:
        """Place records behind all that is there, as one transaction of the log.

        Their positions are final from here on; they are written when the last
        decision of this round was made. Returns the lines.
        """
        lines = framing.encode_transaction(records, self.position, self.durable)
        owed = sum([OWED_BY.get(type(one), 0) for one in records])
        self.owed += owed
        self.grows = self.grows or owed > 0
        self.lines += lines
        self._records += records
        self.position += sum(map(len, lines))
        if self._changes is not None:
            self._changes.apply(records, [len(line) for line in lines])
        return lines

    def enqueue(self, record: Enqueue) -> None:
        """Place a new job that asks for no decision."""
        self.add([record])
        self.ring(record.queue)

    def ring(self, queue: str) -> None:
        """Wake whoever sleeps for that queue, once this is durable."""
        self._called.add(queue)

    def woken(self) -> set[int]:
        """Return the slots to ring; to be asked when everything is written.

        A write that was refused must leave the sleepers to the next one.
        """
        return {
            slot
            for queue in self._called
            for slot in woken(self._control, queue, self.clock)
        }

    def sleep(self, slots: Iterable[int], until: float) -> None:
        """Say that somebody sleeps until then (boot clock): producers shall ring."""
        moment = int(until * 1e6)
        for slot in slots:
            if self._control.waiting_until(slot) < moment:
                self._control.set_waiting(slot, moment)

    @property
    def last(self) -> int:
        """The position of the last record of this transaction; -1 if it has none."""
        return self._records[-1].at if self._records else -1

    def apply(self) -> None:
        """Commit what was applied to the index, if it was used at all."""
        changes, self._changes = self._changes, None
        if changes is not None:
            total = framing.checksum(self.lines[-1]) if self.lines else ""
            changes.mark(self.position, self.last, total)
            changes.flush()
            changes.txn.commit()

    def leave(self) -> None:
        """Take back what was applied to the index but not committed."""
        changes, self._changes = self._changes, None
        if changes is not None:
            changes.txn.abort()
