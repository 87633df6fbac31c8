"""Who works on a store: one small file for each worker, locked while it lives.

The lock says who is alive, not a process id and not an age: it holds across
containers and PID namespaces, and the kernel gives it back at the very moment a
worker dies, however that happens. Files without a lock are what dead workers left;
the next worker removes them. Nothing here is needed for a job to be done.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

import msgspec

from .clock import Clock
from .errors import storage_error
from .vfs import FLAGS, Access, Vfs

NAME = "workers"
#: Seconds between two signs of life.
BEAT = 5.0
#: A file is far shorter; a longer one is not ours.
_LIMIT = 64 * 1024
_LONGEST_NAME = 150
#: Workers under one name, and looks at a file that somebody is looking at.
_SAME_NAME, _LOOKS = 1000, 20
_PAUSE = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEntry:
    """One worker that is alive; times are seconds since the epoch.

    No queues means all of them but ``exclude``. ``beat_at`` is its last sign of
    life: one that is old although the worker is alive tells that it is stopped.
    """

    id: str
    host: str = ""
    pid: int = 0
    queues: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    concurrency: int = 0
    started_at: float = 0.0
    beat_at: float = 0.0

    def serves(self, queue: str) -> bool:
        """Tell whether jobs of that queue are for this worker."""
        if queue in self.exclude:
            return False
        return not self.queues or queue in self.queues

    def to_dict(self) -> dict[str, object]:
        """Return plain values, as JSON has them."""
        plain: dict[str, object] = msgspec.json.decode(msgspec.json.encode(self))
        return plain


#: Every membership of this process, for the fork hook.
_memberships: weakref.WeakSet[Membership] = weakref.WeakSet()


class Membership:
    """A worker's place in the roster, until it leaves or dies."""

    def __init__(
        self,
        directory: str,
        entry: WorkerEntry,
        vfs: Vfs,
        access: Access,
        clock: Clock | None = None,
    ) -> None:
        """Enter a worker; raises ``StorageError`` where nothing can be written."""
        self._folder = f"{directory}/{NAME}"
        self._vfs = vfs
        self._access = access
        self._clock = clock or Clock()
        self._next_beat = 0.0
        self._path = ""
        self._fd = -1
        try:
            vfs.make_directory(self._folder, access)
            _sweep(self._folder, vfs)
            self._enter(entry)
        except OSError as error:
            raise storage_error(error, "The worker could not be registered") from error
        _memberships.add(self)

    def _enter(self, entry: WorkerEntry) -> None:
        name = _file_name(entry.id)
        for number in range(_SAME_NAME):
            path = (
                f"{self._folder}/{name}~{number}"
                if number
                else f"{self._folder}/{name}"
            )
            fd = self._take(path)
            if fd is not None:
                break
        else:
            message = f"More than {_SAME_NAME} workers have one name"
            raise OSError(0, message, name)
        self._fd, self._path = fd, path
        now = self._clock.wall()
        full = replace(entry, host=os.uname().nodename, pid=os.getpid(), started_at=now)
        # On a full disk the lock tells still that a worker is alive.
        with contextlib.suppress(OSError):
            self._vfs.ftruncate(fd, 0)
            self._vfs.write_all(fd, msgspec.json.encode(full) + b"\n")
        self.beat()

    def _take(self, path: str) -> int | None:
        """Return a descriptor that holds the file's lock, None if another worker does."""
        for _ in range(_LOOKS):
            try:
                fd = self._vfs.create(path, os.O_RDWR, self._access)
            except FileNotFoundError:
                continue  # it was swept while it was being made
            if _locked(fd, fcntl.LOCK_EX, self._vfs):
                if self._vfs.fstat(fd).st_nlink:
                    return fd
            elif not _locked(fd, fcntl.LOCK_SH, self._vfs):
                self._vfs.close(fd)
                return None
            # It was swept between the two calls, or somebody is just looking at it.
            self._vfs.close(fd)
            self._clock.sleep(_PAUSE)
        return None

    def beat(self) -> None:
        """Give a sign of life; cheap, so it may be called at any time."""
        now = self._clock.boot()
        if self._fd >= 0 and now >= self._next_beat:
            self._next_beat = now + BEAT
            wall = self._clock.wall()
            with contextlib.suppress(OSError):
                self._vfs.utime(self._fd, (wall, wall))

    def leave(self) -> None:
        """Take the worker out of the roster."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):
                self._vfs.unlink(self._path)
            self._vfs.close(fd)

    def after_fork(self) -> None:
        """Let go of the file in a child: it is no worker, and must not seem one."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._vfs.close(fd)


def alive(directory: str, vfs: Vfs) -> list[WorkerEntry]:
    """Return the workers that are alive now, by name; needs no permission to write."""
    found = []
    for path in _files(f"{directory}/{NAME}", vfs):
        # What cannot be opened or locked has just left, or is not for us to see.
        with contextlib.suppress(OSError):
            fd = vfs.open(path, os.O_RDONLY | FLAGS)
            try:
                if not _locked(fd, fcntl.LOCK_SH, vfs):
                    found.append(_entry(fd, path, vfs))
            finally:
                vfs.close(fd)
    return found


def _entry(fd: int, path: str, vfs: Vfs) -> WorkerEntry:
    beat_at = vfs.fstat(fd).st_mtime
    try:
        entry = msgspec.json.decode(vfs.read_all(fd, 0, _LIMIT), type=WorkerEntry)
    except (OSError, msgspec.DecodeError):
        # It is just being written, or there was no room for it.
        name = unquote(os.path.basename(path).partition("~")[0])
        entry = WorkerEntry(id=name)
    return replace(entry, beat_at=beat_at)


def _sweep(folder: str, vfs: Vfs) -> None:
    """Remove the files of workers that died."""
    for path in _files(folder, vfs):
        try:
            fd = vfs.open(path, os.O_RDONLY | FLAGS)
        except OSError:
            continue
        try:
            # Removed while locked: whoever waits for it then sees that it is gone.
            if _locked(fd, fcntl.LOCK_EX, vfs):
                with contextlib.suppress(OSError):
                    vfs.unlink(path)
        finally:
            vfs.close(fd)


def _locked(fd: int, kind: int, vfs: Vfs) -> bool:
    try:
        vfs.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _files(folder: str, vfs: Vfs) -> Iterator[str]:
    try:
        names = sorted(vfs.listdir(folder))
    except OSError:
        return
    for name in names:
        yield f"{folder}/{name}"


def _file_name(worker: str) -> str:
    """Return an id as a file's name; what no name may hold is spelt out."""
    name = quote(worker or "worker", safe=" @+=,:")[:_LONGEST_NAME]
    return name if name.strip(".") else f"%2E{name[1:]}"


def _after_fork() -> None:
    for membership in list(_memberships):
        membership.after_fork()


os.register_at_fork(after_in_child=_after_fork)
