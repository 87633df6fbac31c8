"""A file system that keeps what was written when, and synced when, names included.

What it keeps is a trace of changes to a disk, enough to tell every state in which a
power cut may leave that disk: see ``power``.
"""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import dataclass
from typing import Any

from django_nobroker.engine.vfs import Vfs

#: Files without content of their own: a power cut takes away what they stand for.
EPHEMERAL = frozenset({"control", "lock"})


@dataclass(frozen=True, slots=True)
class Made:
    """A file or a directory that came to be, under a name in a directory."""

    folder: int
    name: str
    node: int
    is_folder: bool


@dataclass(frozen=True, slots=True)
class Renamed:
    """An entry that got another name in the same directory."""

    folder: int
    old: str
    new: str
    node: int


@dataclass(frozen=True, slots=True)
class Removed:
    """An entry that was taken out of a directory."""

    folder: int
    name: str


@dataclass(frozen=True, slots=True)
class Written:
    """Bytes that were written to a file at an offset."""

    node: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Resized:
    """A file that was cut, or made longer by zeros."""

    node: int
    size: int


@dataclass(frozen=True, slots=True)
class Synced:
    """Everything before is on the disk: a file's bytes, or a directory's names."""

    node: int


Change = Made | Renamed | Removed | Written | Resized | Synced

#: The directory that was there before the recording began.
ROOT = 0


class Recorder(Vfs):
    """The real file system below one directory, with a trace of its changes.

    ``lazy`` leaves the syncs out, which nothing here needs but the trace.
    """

    def __init__(self, root: str, *, lazy: bool = True) -> None:
        self.trace: list[Change] = []
        self._root = os.path.realpath(root)
        self._lazy = lazy
        self._mutex = threading.RLock()
        self._nodes: dict[tuple[int, int], int] = {self._key(os.stat(root)): ROOT}
        self._last = ROOT
        self._fds: dict[int, tuple[int, int]] = {}  # node, flags
        for name in ("open", "close", "write", "ftruncate", "fsync", "fdatasync"):
            setattr(self, name, getattr(self, f"_{name}"))
        for name in ("rename", "unlink", "rmdir", "mkdir", "mkfifo"):
            setattr(self, name, getattr(self, f"_{name}"))

    @staticmethod
    def _key(there: os.stat_result) -> tuple[int, int]:
        return there.st_dev, there.st_ino

    def _node(self, path: str) -> int | None:
        return self._nodes.get(self._key(os.stat(path)))

    def _is_outside(self, path: str) -> bool:
        folder = os.path.realpath(os.path.dirname(path))
        inside = folder == self._root or folder.startswith(self._root + os.sep)
        return not inside or os.path.basename(path) in EPHEMERAL

    def _made(self, path: str, *, is_folder: bool) -> None:
        folder = self._node(os.path.dirname(path))
        assert folder is not None, path
        self._last += 1
        self._nodes[self._key(os.stat(path))] = self._last
        name = os.path.basename(path)
        self.trace.append(Made(folder, name, self._last, is_folder))

    # --- the calls ---------------------------------------------------------------------

    def _open(self, path: str, flags: int, mode: int = 0o777) -> int:
        with self._mutex:
            new = bool(flags & os.O_CREAT) and not os.path.lexists(path)
            fd = os.open(path, flags, mode)
            if new and not self._is_outside(path):
                self._made(path, is_folder=False)
            node = self._nodes.get(self._key(os.fstat(fd)))
            if node is not None:
                self._fds[fd] = node, flags
            return fd

    def _close(self, fd: int) -> None:
        with self._mutex:
            self._fds.pop(fd, None)
            os.close(fd)

    def _write(self, fd: int, data: bytes) -> int:
        with self._mutex:
            known = self._fds.get(fd)
            if known is None:
                return os.write(fd, data)
            node, flags = known
            offset = (
                os.fstat(fd).st_size
                if flags & os.O_APPEND
                else os.lseek(fd, 0, os.SEEK_CUR)
            )
            size = os.write(fd, data)
            self.trace.append(Written(node, offset, bytes(data[:size])))
            return size

    def _ftruncate(self, fd: int, size: int) -> None:
        with self._mutex:
            before = os.fstat(fd).st_size
            os.ftruncate(fd, size)
            if fd in self._fds and size != before:
                self.trace.append(Resized(self._fds[fd][0], size))

    def _fsync(self, fd: int) -> None:
        with self._mutex:
            if not self._lazy:
                os.fsync(fd)
            if fd in self._fds:
                self.trace.append(Synced(self._fds[fd][0]))

    _fdatasync = _fsync

    def _mkdir(self, path: str, mode: int = 0o777) -> None:
        with self._mutex:
            os.mkdir(path, mode)
            if not self._is_outside(path):
                self._made(path, is_folder=True)

    def _mkfifo(self, path: str, mode: int = 0o666) -> None:
        os.mkfifo(path, mode)  # it holds nothing, and is made anew where it is missing

    def _rename(self, old: str, new: str) -> None:
        with self._mutex:
            node = self._node(old)
            if os.path.isdir(new) and os.listdir(new):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), new)
            os.rename(old, new)
            folder = self._node(os.path.dirname(new))
            assert folder == self._node(os.path.dirname(old)), "another directory"
            if node is not None and folder is not None:
                before, after = os.path.basename(old), os.path.basename(new)
                self.trace.append(Renamed(folder, before, after, node))

    def _unlink(self, path: str) -> None:
        self._remove(path, os.unlink)

    def _rmdir(self, path: str) -> None:
        self._remove(path, os.rmdir)

    def _remove(self, path: str, remove: Any) -> None:
        with self._mutex:
            key = self._key(os.lstat(path))
            folder = self._node(os.path.dirname(path))
            remove(path)
            # The kernel gives the number to another file one day.
            if self._nodes.pop(key, None) is not None and folder is not None:
                self.trace.append(Removed(folder, os.path.basename(path)))
