"""The published end of the log: checked before each append, moved behind it.

Everything here happens under the flock, by whoever holds it.

Invariants, named in the code:

T1  Nothing is appended before the end of the file is the published end. Whole
    transactions that a process wrote but could not publish before it died are
    adopted, anything else behind the end is set aside and cut.
T2  A transaction is one ``write``. If it fails, the file is cut back under the
    lock, and nothing of it was published or applied.
T4  A new segment is published before its file is made, and its first record after
    that. An active segment that begins at the published end is one that somebody
    began: the next writer makes it.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from . import framing, record, replay, segment, setaside
from .clock import Clock
from .commit import failed
from .control import (
    DURABLE,
    END,
    EPOCH,
    FAILED,
    GENERATION,
    LAST,
    LOW,
    SEGMENT,
    ControlPage,
)
from .errors import CorruptLogError, StorageError, storage_error
from .index import Index
from .locks import StoreLock
from .log import Log
from .record import SegmentStart
from .vfs import Access, Vfs


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the write path of one store is made of."""

    directory: str
    control: ControlPage
    log: Log
    index: Index
    lock: StoreLock
    clock: Clock
    vfs: Vfs
    access: Access
    segment_size: int


class LogEnd:
    """Where one process appends to the log of one store."""

    def __init__(self, parts: Parts) -> None:
        self._directory = parts.directory
        self._control = parts.control
        self._words = parts.control.words
        self._log = parts.log
        self._vfs = parts.vfs
        self._access = parts.access
        self._clock = parts.clock
        self._segment_size = parts.segment_size
        self._active = -1
        self._path = ""
        self._device = self._inode = -1

    def append(self, descriptor: int, data: bytes, start: int, last: int) -> None:
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

    def check(self) -> int:
        """Return the descriptor to append to, standing at the published end."""
        words = self._words
        if words[FAILED]:
            raise failed(self._directory)
        base = words[SEGMENT]
        if base == words[END]:
            return self._begin_segment()  # whoever was at it has died: T4
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
        if size >= self._segment_size:
            descriptor = self._roll()
        return descriptor

    def _enter_segment(self, base: int) -> None:
        try:
            start = segment.read_start(self._directory, base, self._vfs)
            # A damaged first record costs no other; a store put in the place of
            # this one would begin with a whole one.
            if start is not None and start.store != self._control.store_id.hex():
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
                self._access,
                why=setaside.TORN,
            )
            self._vfs.ftruncate(descriptor, whole.end - base)
        if whole.records:
            words[LAST] = whole.records[-1].at
        words[END] = whole.end

    @staticmethod
    def _sound(decoded: framing.Decoded, end: int) -> int:
        first = min((damage.start for damage in decoded.damage), default=decoded.end)
        return min(first, decoded.end) - end

    def roll_used(self) -> None:
        """Begin a new segment if there is more in this one than its first record."""
        if self._words[LAST] > self._words[SEGMENT]:
            self._roll()

    def _roll(self) -> int:
        # Said before there is a file, so that no process goes on in the old segment
        # beside a new one (keeps T4).
        self._words[SEGMENT] = self._words[END]
        return self._begin_segment()

    def _begin_segment(self) -> int:
        """Make the file of a segment that was begun, and publish its first record."""
        words = self._words
        base = words[SEGMENT]
        before, _ = self._log.segment_of(base - 1)
        if before != self._active:
            self._enter_segment(before)  # it tells whether this store is still there
        start = SegmentStart(
            format=record.FORMAT,
            store=self._control.store_id.hex(),
            epoch=words[EPOCH],
            boot=self._clock.boot_id().hex(),
            generation=words[GENERATION],
            prev=before,
            last=words[LAST],
            sum=self._checksum_at(words[LAST]),
            low=words[LOW],
        )
        line = framing.encode_transaction([start], base, words[DURABLE])[0]
        try:
            self._log.roll(line, base)
        except OSError as error:
            self._go_on_in(before)
            raise storage_error(error, "A new segment could not be made") from error
        words[LAST] = base
        words[END] = base + len(line)
        self._enter_segment(base)
        return self._log.active(base)

    def _go_on_in(self, before: int) -> None:
        """Take a segment back that could not be made, if nothing of it is left."""
        path = f"{self._directory}/{segment.file_name(self._words[SEGMENT])}"
        try:
            with contextlib.suppress(FileNotFoundError):
                self._vfs.unlink(path)
        except OSError:
            return  # the next writer tries to make it again
        self._words[SEGMENT] = before

    def _checksum_at(self, position: int) -> str:
        found = self._log.record_at(position)
        return framing.checksum(found[1]) if found is not None else ""
