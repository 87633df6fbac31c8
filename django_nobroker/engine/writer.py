"""The one write path: every change of a store goes through here.

::

    thread lock -> flock -> check the end -> [catch the index up] -> decide
        -> one write of all lines -> publish the end -> [apply to the index] -> unlock
    then, outside the locks: sync, publish the durable position, ring the doorbell

Lock order: thread lock, flock, LMDB write transaction. Nothing runs user code,
sleeps or syncs while the flock is held.

Invariants, named in the code:

T3  The index is never ahead of the published end, so it is committed after it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

import lmdb

from . import framing
from .control import (
    DURABLE,
    END,
    FAILED,
    OWED,
)
from .errors import StorageError
from .logend import LogEnd, Parts
from .record import Enqueue
from .room import Room
from .transaction import Transaction, woken

T = TypeVar("T")

#: An index that lags less than this is caught up under the lock.
_NEAR = 64 * 1024


class Request(Generic[T]):
    """One decision on its way: made, written, made durable, answered."""

    __slots__ = ("answer", "decide", "error", "settled", "wake", "written")

    def __init__(self, decide: Callable[[Transaction], T]) -> None:
        self.decide = decide
        self.answer: T | None = None
        self.error: BaseException | None = None
        self.written = 0  # the position after its records, once they are in the file
        self.settled = False
        self.wake = threading.Lock()
        self.wake.acquire()


class Writer:
    """The write path of one store in one process."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._control = parts.control
        self._words = parts.control.words
        self._index = parts.index
        self._lock = parts.lock
        self._end = LogEnd(parts)
        self._room = Room(parts.control, parts.vfs)

    def write(
        self, requests: list[Request[T]], timeout: float, *, indexed: bool
    ) -> set[int]:
        """Make the decisions of all requests and write what they decide.

        With ``indexed`` the index is brought near the end before the lock is taken.
        Each request gets its answer or its error. Returns whom to ring once all is
        durable. Raises ``LockTimeoutError`` and ``StorageError``; then nothing was
        written.
        """
        if not requests:
            return set()
        if indexed:
            self.approach()
        try:
            return self._write_together(requests, timeout)
        except lmdb.Error:
            # Nothing was written: build the index anew, outside the lock.
            self._index.discard()
            self.approach()
            return self._write_together(requests, timeout)
        except StorageError:
            if len(requests) == 1 or self._words[FAILED]:
                raise
        # Together they did not fit on the disk: the small ones may.
        rung: set[int] = set()
        for request in requests:
            try:
                rung |= self._write_together([request], timeout)
            except StorageError as error:
                request.error = error
        return rung

    def _write_together(self, requests: list[Request[T]], timeout: float) -> set[int]:
        self._lock.acquire(timeout)
        try:
            descriptor = self._end.check()
            transaction = Transaction(
                self._control, self._index, self._room, self._parts.clock
            )
            try:
                for request in requests:
                    request.error = None
                    try:
                        request.answer = request.decide(transaction)
                    except lmdb.Error:
                        raise
                    except Exception as error:  # noqa: BLE001 - it is the caller's
                        request.error = error
                for request in requests:
                    # Also one that wrote nothing may have answered with what
                    # somebody else wrote a moment ago.
                    if request.error is None:
                        request.written = transaction.position
                if transaction.lines:
                    self._append_all(descriptor, transaction, requests)
                try:
                    transaction.apply()  # T3
                except lmdb.Error:
                    self._index.discard()
            finally:
                transaction.leave()
            return transaction.woken()
        finally:
            self._lock.release()

    def _append_all(
        self, descriptor: int, transaction: Transaction, requests: list[Request[T]]
    ) -> None:
        data = b"".join(transaction.lines)
        try:
            if transaction.grows:
                self._room.check(descriptor, len(data))
            self._end.append(descriptor, data, transaction.start, transaction.last)
        except BaseException:
            # Whoever leads next makes these decisions anew, unless a signal came
            # when the end was published already: then nothing is written twice.
            if self._words[END] == transaction.start:
                for request in requests:
                    request.written = 0
            raise
        self._room.take(transaction.owed)

    def append(self, record: Enqueue, timeout: float) -> tuple[int, Collection[int]]:
        """Write one new job that asks for no decision: the short way.

        It does what ``write`` does with less ado, because most jobs come this way:
        the index is not touched, nothing is gathered. Returns the position behind
        the record, and whom to ring.
        """
        lock, words = self._lock, self._words
        lock.acquire(timeout)
        try:
            descriptor = self._end.check()
            start = words[END]
            (line,) = framing.encode_transaction((record,), start, words[DURABLE])
            end = start + len(line)
            if end > self._room.checked_to:
                self._room.check(descriptor, len(line))
            self._end.append(descriptor, line, start, start)
            words[OWED] += 1
            return end, woken(self._control, record.queue, self._parts.clock)
        finally:
            lock.release()

    def roll(self, timeout: float) -> None:
        """Begin a new segment, unless the active one holds nothing but its beginning."""
        self._lock.acquire(timeout)
        try:
            self._end.check()
            self._end.roll_used()
        finally:
            self._lock.release()

    def approach(self) -> None:
        """Bring the index near the end before the lock is taken."""
        try:
            self._index.catch_up(self._words[END], near=_NEAR)
        except lmdb.Error:
            self._index.discard()
            self._index.catch_up(self._words[END], near=_NEAR)
