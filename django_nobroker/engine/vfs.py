"""Every system call of the engine that touches a file goes through here.

It is the seam of the fault tests: a subclass records, delays, tears or fails
calls. It decides nothing and keeps no state. Methods are the functions of
:mod:`os` themselves, so that the seam costs nothing on the hot path.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
from dataclasses import dataclass

#: Opened by every process for itself and never inherited over ``exec``.
FLAGS = os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Mode and group of every file that the engine makes, whatever the umask."""

    file_mode: int = 0o660
    gid: int | None = None

    @classmethod
    def of(cls, file_mode: int, group: str | int | None) -> Access:
        """Return the access of a mode and a group's name or number."""
        if isinstance(group, str):
            import grp

            group = grp.getgrnam(group).gr_gid
        return cls(file_mode=file_mode, gid=group)

    @property
    def directory_mode(self) -> int:
        """The mode of a directory: execute wherever reading is allowed."""
        return self.file_mode | ((self.file_mode & 0o444) >> 2)


class Vfs:
    """The real file system; errors are plain ``OSError``."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    read = staticmethod(os.read)
    pread = staticmethod(os.pread)
    write = staticmethod(os.write)
    fsync = staticmethod(os.fsync)
    fdatasync = staticmethod(getattr(os, "fdatasync", os.fsync))
    ftruncate = staticmethod(os.ftruncate)
    stat = staticmethod(os.stat)
    fstat = staticmethod(os.fstat)
    listdir = staticmethod(os.listdir)
    rename = staticmethod(os.rename)
    unlink = staticmethod(os.unlink)
    flock = staticmethod(fcntl.flock)
    mkdir = staticmethod(os.mkdir)
    mkfifo = staticmethod(os.mkfifo)
    chmod = staticmethod(os.chmod)
    chown = staticmethod(os.chown)
    utime = staticmethod(os.utime)
    rmdir = staticmethod(os.rmdir)

    def map(self, fd: int, size: int, *, writable: bool) -> mmap.mmap:
        """Map ``size`` bytes of a file, shared with every process that maps it."""
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        return mmap.mmap(fd, size, mmap.MAP_SHARED, protection)

    def free_bytes(self, fd: int) -> int:
        """Return the bytes that an ordinary user may still write on that disk."""
        disk = os.fstatvfs(fd)
        return disk.f_bavail * disk.f_frsize

    def whole_bytes(self, fd: int) -> int:
        """Return the size of that disk in bytes."""
        disk = os.fstatvfs(fd)
        return disk.f_blocks * disk.f_frsize

    # --- a few calls that always go together ---------------------------------

    def create(self, path: str, flags: int, access: Access) -> int:
        """Open a file that may have to be made, with the mode and group asked for."""
        try:
            return self.open(path, flags | FLAGS)
        except FileNotFoundError:
            fd = self.open(path, flags | FLAGS | os.O_CREAT, access.file_mode)
        try:
            self._grant(path, access.file_mode, access.gid)
        except BaseException:
            self.close(fd)
            raise
        return fd

    def make_directory(self, path: str, access: Access) -> bool:
        """Make one directory unless it is there; return whether it was made."""
        try:
            self.mkdir(path, 0o700)
        except FileExistsError:
            return False
        mode = access.directory_mode
        # A setgid directory hands its group on; chmod must not take the bit away.
        mode |= self.stat(path).st_mode & 0o2000
        self._grant(path, mode, access.gid)
        return True

    def make_directories(self, path: str, access: Access) -> None:
        """Make a directory and those above it that are missing, durably."""
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for one in reversed(missing):
            self.make_directory(one, access)
            self.sync_directory(os.path.dirname(one))

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""
        fd = self.open(path, os.O_RDONLY | FLAGS)
        try:
            self.fsync(fd)
        finally:
            self.close(fd)

    def write_all(self, fd: int, data: bytes) -> None:
        """Write everything or raise; a short write is an error like any other."""
        written = self.write(fd, data)
        while written < len(data):
            # The rest tells the reason (a full disk raises ENOSPC here).
            written += self.write(fd, data[written:])

    def read_all(self, fd: int, offset: int, size: int) -> bytes:
        """Read ``size`` bytes at ``offset``, fewer only at the end of the file."""
        data = self.pread(fd, size, offset)
        if len(data) == size or not data:
            return data
        parts = [data]
        have = len(data)
        while have < size:
            data = self.pread(fd, size - have, offset + have)
            if not data:
                break
            parts.append(data)
            have += len(data)
        return b"".join(parts)

    def _grant(self, path: str, mode: int, gid: int | None) -> None:
        if gid is not None:
            self.chown(path, -1, gid)
        # Somebody else may have made it a moment ago; then the mode is theirs.
        with contextlib.suppress(PermissionError):
            self.chmod(path, mode)
