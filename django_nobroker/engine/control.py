"""The control page: the few numbers that all processes on a store share.

One page of the file ``control``, mapped by everybody. It is a cache of the log:
it is believed only while its boot id is this boot's, and anybody may delete it.
Every number is one aligned 64-bit word, read and written by a single machine
instruction, so a reader needs no lock; who may write which word is said below.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Iterable
from functools import lru_cache

from .vfs import FLAGS, Access, Vfs

SIZE = 4096
FORMAT = 1
NAME = "control"
_MAGIC = b"NBCTRL\x00" + bytes([FORMAT])

# Words, by index. All but DURABLE and FAILED are written under the flock only.
_STORE = 1  # two words
_BOOT = 3  # two words
EPOCH = 5  # raised by every recovery
GENERATION = 6  # the epoch in which this boot began
SEGMENT = 7  # position of the active segment
END = 8  # position after the last whole record
DURABLE = 9  # a sync that began after this position was written has succeeded
FAILED = 10  # 1 after a failed sync; never taken back within a boot
OWED = 11  # live jobs, an upper bound: room on the disk is kept for finishing them
LAST = 12  # position of the last whole record
LOW = 13  # where the log begins; segments before it are being removed
OWED_IS_KNOWN = 16  # 1 once the live jobs were counted after a recovery
_DEVICE = 14  # device and inode of the directory: a copied page is not believed
_INODE = 15
_WAITING = 64  # WAITING_SLOTS + 1 words: until when somebody sleeps (boot clock, µs)
WAITING_SLOTS = 64
ANY_QUEUE = WAITING_SLOTS


@lru_cache(maxsize=1024)
def waiting_slot(queue: str) -> int:
    """Return the number under which sleepers and producers of a queue meet."""
    return zlib.crc32(queue.encode()) % WAITING_SLOTS


class ControlPage:
    """The mapped page; ``words[INDEX]`` reads and writes one number."""

    def __init__(self, page: mmap.mmap, *, writable: bool) -> None:
        self._page = page
        self.writable = writable
        self._view = memoryview(page)
        self.words = self._view.cast("Q")

    @classmethod
    def open(cls, directory: str, vfs: Vfs, access: Access) -> ControlPage:
        """Map the page for writing, making the file if it is missing."""
        path = f"{directory}/{NAME}"
        fd = vfs.create(path, os.O_RDWR, access)
        try:
            if vfs.fstat(fd).st_size != SIZE:
                # Written, not only made longer: a page without room on the disk
                # behind it would kill whoever writes to the mapping.
                vfs.ftruncate(fd, 0)
                vfs.write_all(fd, bytes(SIZE))
            return cls(vfs.map(fd, SIZE, writable=True), writable=True)
        finally:
            vfs.close(fd)

    @classmethod
    def open_to_read(cls, directory: str, vfs: Vfs) -> ControlPage | None:
        """Map the page for looking only; None when there is no usable file."""
        try:
            fd = vfs.open(f"{directory}/{NAME}", os.O_RDONLY | FLAGS)
        except OSError:
            return None
        try:
            if vfs.fstat(fd).st_size != SIZE:
                return None
            return cls(vfs.map(fd, SIZE, writable=False), writable=False)
        finally:
            vfs.close(fd)

    def is_current(self, boot_id: bytes, directory: os.stat_result) -> bool:
        """Tell whether the page was written here in this boot (an unknown boot never is)."""
        return (
            boot_id != bytes(16)
            and self.is_ours
            and bytes(self._view[_BOOT * 8 : _BOOT * 8 + 16]) == boot_id
            and self.words[_DEVICE] == directory.st_dev
            and self.words[_INODE] == directory.st_ino
        )

    @property
    def is_ours(self) -> bool:
        """Whether the page was ever written to the end."""
        return bytes(self._view[:8]) == _MAGIC

    @property
    def store_id(self) -> bytes:
        """The 16 bytes that name the store."""
        return bytes(self._view[_STORE * 8 : _STORE * 8 + 16])

    def invalidate(self) -> None:
        """Make everybody distrust the page until it is written anew."""
        self._view[:8] = bytes(8)

    def reset(
        self,
        *,
        store_id: bytes,
        boot_id: bytes,
        directory: os.stat_result,
        words: Iterable[tuple[int, int]],
    ) -> None:
        """Write the whole page anew; the caller holds the flock."""
        self.invalidate()
        self._view[8:SIZE] = bytes(SIZE - 8)
        self._view[_STORE * 8 : _STORE * 8 + 16] = store_id
        self.words[_DEVICE] = directory.st_dev
        self.words[_INODE] = directory.st_ino
        for index, value in words:
            self.words[index] = value
        self._view[_BOOT * 8 : _BOOT * 8 + 16] = boot_id
        # The magic comes last: before it nobody believes the rest.
        self._view[:8] = _MAGIC

    def is_anybody_waiting(self, slot: int) -> bool:
        """Tell whether somebody said that it sleeps for that slot or for any."""
        words = self.words
        return bool(words[_WAITING + slot] or words[_WAITING + ANY_QUEUE])

    def waiting_until(self, slot: int) -> int:
        """Return until when somebody sleeps for that slot (boot clock, microseconds)."""
        return int(self.words[_WAITING + slot])

    def set_waiting(self, slot: int, until: int) -> None:
        """Say until when somebody sleeps; the caller holds the flock."""
        self.words[_WAITING + slot] = until

    def close(self) -> None:
        """Unmap the page."""
        self.words.release()
        self._view.release()
        self._page.close()
