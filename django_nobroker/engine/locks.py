"""The mutual exclusion of a store: one thread of one process at a time.

Beside it the maintenance lock: whoever copies the files of a store keeps them from
being removed meanwhile, and writers go on.

A flock belongs to the open file description, so threads and forked children of
one process would share it: a thread lock comes first, and a child opens the
file for itself. The kernel gives the flock back when a process dies.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .clock import Clock
from .errors import LockTimeoutError, QueueClosedError, StorageError, storage_error
from .vfs import FLAGS, Access, Vfs

NAME = "lock"
_FIRST_PAUSE = 0.00005
_LONGEST_PAUSE = 0.002
_MAINTENANCE_PAUSE = 0.01


class StoreLock:
    """Thread lock, then flock. It protects the end of the log and the control page."""

    def __init__(
        self, directory: str, vfs: Vfs, access: Access, clock: Clock | None = None
    ) -> None:
        self._path = f"{directory}/{NAME}"
        self._vfs = vfs
        self._access = access
        self._clock = clock or Clock()
        self._mutex = threading.Lock()
        self._fd = -1
        self.closed = False

    def acquire(self, timeout: float) -> None:
        """Take both locks within ``timeout`` seconds or raise ``LockTimeoutError``."""
        if not self._mutex.acquire(timeout=timeout):
            raise self._timeout(timeout)
        try:
            if self._fd < 0:
                self._open()
            try:
                self._vfs.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._wait(timeout)
        except OSError as error:
            self._mutex.release()
            if isinstance(error, StorageError):
                raise
            raise storage_error(error, "The store could not be locked") from error
        except BaseException:
            self._mutex.release()
            raise

    def _open(self) -> None:
        if self.closed:
            raise QueueClosedError("The store is closed.")
        self._fd = self._vfs.create(self._path, os.O_RDWR, self._access)

    def release(self) -> None:
        """Give both locks back."""
        try:
            self._vfs.flock(self._fd, fcntl.LOCK_UN)
        finally:
            self._mutex.release()

    @contextmanager
    def held(self, timeout: float) -> Iterator[None]:
        """Hold both locks for the time of a block."""
        self.acquire(timeout)
        try:
            yield
        finally:
            self.release()

    def _wait(self, timeout: float) -> None:
        # A blocking flock could not be given up; the lock is held for microseconds,
        # so looking again soon is cheap. Other errors (ENOLCK on a file system
        # without locks) are told as what they are, by the caller.
        deadline = self._clock.monotonic() + timeout
        pause = _FIRST_PAUSE
        while True:
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise self._timeout(timeout)
            self._clock.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_PAUSE)
            try:
                self._vfs.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            return

    def _timeout(self, timeout: float) -> LockTimeoutError:
        return LockTimeoutError(
            f"{self._path} is held by another process or thread for more than {timeout} seconds."
        )

    def close(self) -> None:
        """Close the file; whoever waits is told that the store is closed."""
        with self._mutex:
            self.closed = True
            self.forget()

    def forget(self) -> None:
        """Close this process's descriptor without unlocking it for others."""
        if self._fd >= 0:
            self._vfs.close(self._fd)
            self._fd = -1

    def after_fork(self) -> None:
        """Open the file anew on the next use: the parent's description is not ours."""
        self._mutex = threading.Lock()
        self.forget()


class Maintenance:
    """Whoever needs all files of a store to stay, or removes some, holds this.

    A flock of the store's directory itself: it makes no file, needs permission to
    read only, and is gone with the process that held it. Every block opens the
    directory for itself, so threads of one process exclude each other, too. It is
    taken before every other lock of the store, or without any.
    """

    def __init__(self, directory: str, vfs: Vfs, clock: Clock | None = None) -> None:
        self._directory = directory
        self._vfs = vfs
        self._clock = clock or Clock()

    @contextmanager
    def shared(self, timeout: float = 60.0) -> Iterator[None]:
        """Keep every file of the store where it is for the time of a block.

        Any number may do so at once. Raises ``LockTimeoutError`` if files are being
        removed for longer than ``timeout`` seconds, ``StorageError`` if there is no
        such directory.
        """
        deadline = self._clock.monotonic() + timeout
        with self._opened() as fd:
            while not self._taken(fd, fcntl.LOCK_SH):
                if self._clock.monotonic() >= deadline:
                    msg = f"{self._directory} is being compacted for more than {timeout} seconds."
                    raise LockTimeoutError(msg)
                self._clock.sleep(_MAINTENANCE_PAUSE)
            yield

    @contextmanager
    def exclusive(self) -> Iterator[bool]:
        """Tell whether nobody else holds it; if so, nobody does for the time of the block.

        It never waits: who removes files does so another time if the answer is False.
        Raises ``StorageError`` if there is no such directory.
        """
        with self._opened() as fd:
            yield self._taken(fd, fcntl.LOCK_EX)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            fd = self._vfs.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | FLAGS)
        except OSError as error:
            raise storage_error(error, "The store could not be locked") from error
        try:
            yield fd
        finally:
            try:
                # Said aloud: a child forked meanwhile has the descriptor, too.
                self._vfs.flock(fd, fcntl.LOCK_UN)
            finally:
                self._vfs.close(fd)

    def _taken(self, fd: int, kind: int) -> bool:
        try:
            self._vfs.flock(fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise storage_error(error, "The store could not be locked") from error
        return True
