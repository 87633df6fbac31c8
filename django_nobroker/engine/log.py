"""The segments in order: reading from any position, appending at the end.

It knows files and positions, not what records mean. Who may append, and when,
is decided in ``transaction``.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator

from . import framing, segment
from .errors import CorruptLogError, storage_error
from .framing import Decoded
from .record import AnyRecord, Open, Unknown
from .vfs import FLAGS, Access, Vfs

#: How much is read at once when many records are wanted.
STRETCH = framing.STRETCH
#: How much is read when one record is wanted whose length is not known.
_PROBE = 4096
_KEPT_OPEN = 8


class DroppedError(CorruptLogError):
    """A position was asked for that a compaction has dropped."""


class Log:
    """The open segments of one store, of one process."""

    def __init__(self, directory: str, vfs: Vfs, access: Access) -> None:
        self.directory = directory
        self._vfs = vfs
        self._access = access
        # Protects the two caches below; nothing is called while it is held but
        # open and close of a segment.
        self._mutex = threading.Lock()
        self._positions: list[int] = []
        self._readers: OrderedDict[int, int] = OrderedDict()
        self._active: tuple[int, int] | None = (
            None  # position, descriptor; under the flock
        )
        #: Tells the newest segment, if somebody knows: saves looking at the directory.
        self.newest: Callable[[], int | None] = lambda: None
        #: Tells where the log begins: segments before are on their way out.
        self.low: Callable[[], int] = lambda: 0

    # --- segments ---------------------------------------------------------

    def refresh(self) -> list[int]:
        """Look at the directory again and return the positions of the segments."""
        low = self.low()
        try:
            there = segment.positions(self.directory, self._vfs)
        except OSError as error:
            raise storage_error(error, "The log could not be looked for") from error
        found = [position for position in there if position >= low] or there
        with self._mutex:
            self._positions = found
            for base in [one for one in self._readers if one < found[0]]:
                self._vfs.close(self._readers.pop(base))
        return found

    @property
    def first(self) -> int:
        """The position where the log begins now."""
        positions = self._positions
        if not positions or positions[0] < self.low():
            positions = self.refresh()
        return positions[0] if positions else 0

    def segment_of(self, position: int) -> tuple[int, int | None]:
        """Return the segment that holds a position, and the one after it."""
        positions = self._positions
        if (
            not positions
            or positions[0] < self.low()
            or (position >= positions[-1] and positions[-1] != self.newest())
        ):
            positions = self.refresh()
        index = bisect_right(positions, position) - 1
        if index < 0:
            msg = f"The log has no segment for position {position}."
            raise DroppedError(msg)
        following = positions[index + 1] if index + 1 < len(positions) else None
        return positions[index], following

    def segments_between(self, start: int, end: int) -> list[int]:
        """Return the segments that hold any byte of ``[start, end)``."""
        first, _ = self.segment_of(start)
        return [position for position in self._positions if first <= position < end]

    # --- reading ----------------------------------------------------------

    def read(self, position: int, size: int) -> bytes:
        """Read up to ``size`` bytes at a position, never past the segment's end."""
        try:
            base, following = self.segment_of(position)
            if following is not None:
                size = min(size, following - position)
            with self._mutex:
                fd = self._reader(base)
                return self._vfs.read_all(fd, position - base, size)
        except FileNotFoundError as error:
            if position < min(self.refresh(), default=0):
                msg = f"The segment of position {position} was dropped meanwhile."
                raise DroppedError(msg) from error
            raise storage_error(error, "The log could not be read") from error
        except OSError as error:
            raise storage_error(error, "The log could not be read") from error

    def read_range(self, start: int, end: int) -> bytes:
        """Read ``[start, end)`` across segments; less if the log ends before that."""
        parts = []
        while start < end and (data := self.read(start, end - start)):
            parts.append(data)
            start += len(data)
        return b"".join(parts)

    def record_at(
        self, position: int, size: int = _PROBE
    ) -> tuple[AnyRecord | Unknown, bytes] | None:
        """Return the record at a position and its line; None if it is damaged.

        ``size`` saves a second reading if the caller knows how long the record is.
        """
        data = self.read(position, size)
        header = data[: framing.HEADER]
        if len(header) == framing.HEADER and header[9:17].isdigit():
            size = int(header[9:17]) + framing.FRAME
            if size > len(data):
                data = self.read(position, size)
        found = framing.decode_at(data, 0, position)
        return None if found is None else (found[0], data[: found[1]])

    def decode(self, start: int, end: int, size: int) -> Decoded:
        """Decode up to ``size`` bytes of ``[start, end)``, within one segment.

        Bytes that a segment lacks before the next one begins count as damage.
        Nothing is decoded when the first record is longer than ``size``.
        """
        if start >= end:
            return Decoded([], [], start, "", [])
        _, following = self.segment_of(start)
        limit = end if following is None else min(end, following)
        data = self.read(start, min(size, limit - start))
        whole = start + len(data) >= limit or len(data) < min(size, limit - start)
        decoded = framing.decode_stretch(data, start, final=whole)
        if whole and decoded.end < limit:
            decoded.damage.append(framing.Damage(decoded.end, limit))
            decoded = decoded._replace(end=limit)
        return decoded

    def stretches(self, start: int, end: int) -> Iterator[Decoded]:
        """Decode the log from ``start`` to ``end``, a megabyte or so at a time."""
        size = STRETCH
        while start < end:
            decoded = self.decode(start, end, size)
            if decoded.end == start:
                size *= 2
                continue
            size = STRETCH
            start = decoded.end
            yield decoded

    def was_acknowledged(self, position: int, end: int) -> bool:
        """Tell whether a record between a position and ``end`` knew it as durable.

        A recovery that found it in a hole has settled that it never was.
        """
        for decoded in self.stretches(position, end):
            for found in decoded.records:
                if found.d > position:
                    return True
                if isinstance(found, Open) and any(
                    first <= position < last for first, last in found.holes
                ):
                    return False
        return False

    def _reader(self, base: int) -> int:
        fd = self._readers.pop(base, None)
        if fd is None:
            fd = segment.open_to_read(self.directory, base, self._vfs)
            if len(self._readers) >= _KEPT_OPEN:
                _, oldest = self._readers.popitem(last=False)
                self._vfs.close(oldest)
        self._readers[base] = fd
        return fd

    # --- appending (the caller holds the flock) -----------------------------

    def active(self, base: int) -> int:
        """Return a descriptor to append to the active segment."""
        if self._active is None or self._active[0] != base:
            try:
                fd = segment.open_to_append(self.directory, base, self._vfs)
            except OSError as error:
                raise storage_error(error, "The log could not be opened") from error
            self._leave_active()
            self._active = (base, fd)
        return self._active[1]

    def roll(self, start: bytes, position: int) -> int:
        """Begin a new segment at ``position`` with the line ``start``."""
        fd = segment.create(self.directory, start, position, self._vfs, self._access)
        self._leave_active()
        self._active = (position, fd)
        with self._mutex:
            if position not in self._positions:
                self._positions = sorted([*self._positions, position])
        return fd

    def _leave_active(self) -> None:
        if self._active is not None:
            self._vfs.close(self._active[1])
            self._active = None

    # --- syncing (outside the flock) ---------------------------------------

    def sync(self, start: int, end: int) -> None:
        """Make ``[start, end)`` durable, names of new segments included.

        Raises ``StorageError`` when a file cannot be opened, which says nothing of
        the disk, and a plain ``OSError`` when a sync has failed.
        """
        bases = self.segments_between(max(start, self.first), end)
        new = False
        for base in bases:
            # A descriptor of its own: the one to append to may be closed by a
            # thread that begins the next segment meanwhile.
            fd = self._open_to_sync(f"{self.directory}/{segment.file_name(base)}")
            try:
                self._vfs.fdatasync(fd)
            finally:
                self._vfs.close(fd)
            new = new or base >= start
        if new:
            fd = self._open_to_sync(self.directory)
            try:
                self._vfs.fsync(fd)
            finally:
                self._vfs.close(fd)

    def _open_to_sync(self, path: str) -> int:
        try:
            return self._vfs.open(path, os.O_RDONLY | FLAGS)
        except OSError as error:
            raise storage_error(error, "The log could not be opened") from error

    def close(self) -> None:
        """Close every descriptor."""
        self._leave_active()
        with self._mutex:
            for fd in self._readers.values():
                self._vfs.close(fd)
            self._readers.clear()

    def after_fork(self) -> None:
        """Open everything anew on the next use."""
        self._mutex = threading.Lock()
        self.close()
