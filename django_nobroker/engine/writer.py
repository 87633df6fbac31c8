"""The one write path: every change of a store goes through here.

::

    thread lock -> flock -> check the end -> [catch the index up] -> decide
        -> one write of all lines -> publish the end -> [apply to the index] -> unlock
    then, outside the locks: sync, publish the durable position, ring the doorbell

Lock order: thread lock, flock, LMDB write transaction. Nothing runs user code,
sleeps or syncs while the flock is held.

Invariants, named in the code:

T1  Nothing is appended before the end of the file is the published end. Whole
    transactions that a process wrote but could not publish before it died are
    adopted, anything else behind the end is set aside and cut.
T2  A transaction is one ``write``. If it fails, the file is cut back under the
    lock, and nothing of it was published or applied.
T3  The index is never ahead of the published end, so it is committed after it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import lmdb

from . import doorbell, framing, record, replay, segment, setaside
from .clock import Clock
from .commit import Committer, failed
from .control import (
    DURABLE,
    END,
    EPOCH,
    FAILED,
    GENERATION,
    LAST,
    OWED,
    SEGMENT,
    ControlPage,
)
from .errors import CorruptLogError, StorageError, storage_error
from .index import Index
from .locks import StoreLock
from .log import Log
from .record import Enqueue, SegmentStart
from .room import Room
from .transaction import Transaction, woken
from .vfs import Access, Vfs

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the write path of one store is made of."""

    directory: str
    control: ControlPage
    log: Log
    index: Index
    lock: StoreLock
    committer: Committer
    clock: Clock
    vfs: Vfs
    access: Access
    segment_size: int


class Writer:
    """The write path of one store in one process."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._directory = parts.directory
        self._control = parts.control
        self._words = parts.control.words
        self._log = parts.log
        self._index = parts.index
        self._lock = parts.lock
        self._committer = parts.committer
        self._vfs = parts.vfs
        self._active = -1
        self._path = ""
        self._device = self._inode = -1
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
            descriptor = self._check_end()
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
            return transaction.rung
        finally:
            self._lock.release()

    def _append_all(
        self, descriptor: int, transaction: Transaction, requests: list[Request[T]]
    ) -> None:
        data = b"".join(transaction.lines)
        try:
            if transaction.grows:
                self._room.check(descriptor, len(data))
            self._append(descriptor, data, transaction.start, transaction.last)
        except BaseException:
            # Whoever leads next makes these decisions anew, unless a signal came
            # when the end was published already: then nothing is written twice.
            if self._words[END] == transaction.start:
                for request in requests:
                    request.written = 0
            raise
        self._room.take(transaction.owed)

    def append(self, record: Enqueue, timeout: float) -> None:
        """Write one new job that asks for no decision: the short way.

        It does what ``write`` does with less ado, because most jobs come this way
        when nothing is synced: the index is not touched, nothing is gathered. It is
        not durable when this returns.
        """
        lock, words = self._lock, self._words
        lock.acquire(timeout)
        try:
            descriptor = self._check_end()
            start = words[END]
            line = framing.place(record, start, words[DURABLE])
            end = start + len(line)
            if end > self._room.checked_to:
                self._room.check(descriptor, len(line))
            self._append(descriptor, line, start, start)
            words[OWED] += 1
            rung = woken(self._control, record.queue, self._parts.clock)
        finally:
            lock.release()
        if rung:
            doorbell.ring(self._directory, rung, self._vfs)

    def _append(self, descriptor: int, data: bytes, start: int, last: int) -> None:
        """Write lines at the end of the file, which is ``start``, and publish it.

        ``last`` is the position of the last record in ``data``.
        """
        words = self._words
        try:
            written = self._vfs.write(descriptor, data)
            if written < len(data):
                # The rest tells the reason: a full disk raises here.
                self._vfs.write_all(descriptor, data[written:])
            words[LAST] = last
            words[END] = start + len(data)
        except BaseException as error:
            # T2, for signals as well; should that fail too, the next writer finds
            # the rest behind the end: T1.
            if words[END] == start:
                with contextlib.suppress(OSError):
                    self._vfs.ftruncate(descriptor, start - self._active)
            if isinstance(error, OSError):
                raise storage_error(error, "The log could not be written") from error
            raise

    def _check_end(self) -> int:
        """Return the descriptor to append to, standing at the published end."""
        words = self._words
        if words[FAILED]:
            raise failed(self._directory)
        base = words[SEGMENT]
        if base != self._active:
            self._enter_segment(base)
        try:
            there = self._vfs.stat(self._path)
        except OSError as error:
            raise storage_error(error, "The store is gone") from error
        if there.st_ino != self._inode or there.st_dev != self._device:
            message = "The store was replaced by another one while it was in use; open it again"
            raise StorageError(2, message, self._directory)
        descriptor = self._log.active(base)
        size = there.st_size
        if base + size != words[END]:
            try:
                self._settle_surplus(descriptor, base, base + size)
            except OSError as error:
                raise storage_error(error, "The end could not be settled") from error
        if size >= self._parts.segment_size:
            descriptor = self._roll()
        return descriptor

    def _enter_segment(self, base: int) -> None:
        try:
            start = segment.read_start(self._directory, base, self._vfs)
            if start is None or start.store != self._control.store_id.hex():
                message = "The store was replaced by another one while it was in use; open it again"
                raise StorageError(2, message, self._directory)
            there = self._vfs.fstat(self._log.active(base))
        except CorruptLogError as error:
            raise StorageError(2, str(error), self._directory) from error
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise storage_error(error, "The store is gone") from error
        self._active = base
        self._device, self._inode = there.st_dev, there.st_ino
        self._path = f"{self._directory}/{segment.file_name(base)}"

    def _settle_surplus(self, descriptor: int, base: int, size_end: int) -> None:
        """Adopt or cut what stands behind the published end (keeps T1)."""
        words = self._words
        end = words[END]
        if size_end < end:
            message = f"The log ends at {size_end}, but {end} was published; nothing was changed"
            raise StorageError(5, message, self._path)
        data = self._vfs.read_all(descriptor, end - base, size_end - end)
        decoded = framing.decode_stretch(data, end, final=False)
        if decoded.damage or decoded.end < end + len(data):
            decoded = framing.decode_stretch(
                data[: self._sound(decoded, end)], end, final=False
            )
        whole = replay.whole_transactions(decoded, lambda _: False)
        if whole.end < size_end:
            setaside.keep(
                self._directory,
                whole.end,
                data[whole.end - end :],
                self._vfs,
                self._parts.access,
            )
            self._vfs.ftruncate(descriptor, whole.end - base)
        if whole.records:
            words[LAST] = whole.records[-1].at
        words[END] = whole.end

    @staticmethod
    def _sound(decoded: framing.Decoded, end: int) -> int:
        first = min((damage.start for damage in decoded.damage), default=decoded.end)
        return min(first, decoded.end) - end

    def _roll(self) -> int:
        words = self._words
        end = words[END]
        start = SegmentStart(
            format=record.FORMAT,
            store=self._control.store_id.hex(),
            epoch=words[EPOCH],
            boot=self._parts.clock.boot_id().hex(),
            generation=words[GENERATION],
            prev=words[SEGMENT],
            last=words[LAST],
            sum=self._checksum_at(words[LAST]),
        )
        line = framing.encode_transaction([start], end, words[DURABLE])[0]
        try:
            self._log.roll(line, end)
        except OSError as error:
            raise storage_error(error, "A new segment could not be made") from error
        words[LAST] = end
        # The segment first: if this process dies in between, the next one finds
        # the first record behind the end and adopts it.
        words[SEGMENT] = end
        words[END] = end + len(line)
        self._enter_segment(end)
        return self._log.active(end)

    def _checksum_at(self, position: int) -> str:
        found = self._log.record_at(position)
        return framing.checksum(found[1]) if found is not None else ""

    def approach(self) -> None:
        """Bring the index near the end before the lock is taken."""
        try:
            self._index.catch_up(self._words[END], near=_NEAR)
        except lmdb.Error:
            self._index.discard()
            self._index.catch_up(self._words[END], near=_NEAR)
