"""Waking sleepers: named pipes that a producer writes one byte into.

Every sleeper has pipes of its own in the directory ``doorbell``, one for each
queue it serves, so a wake-up reaches all who sleep for that queue, and no one
takes it away from another. Whether somebody sleeps stands in the control page,
written and consumed under the flock, so a producer that finds nobody asleep
does nothing, and no wake-up is lost between looking and falling asleep. A pipe
without a reader belongs to a process that died and is removed by who finds it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import select
from collections.abc import Iterable

from .control import ANY_QUEUE, waiting_slot
from .vfs import FLAGS, Access, Vfs

NAME = "doorbell"
_ATTEMPTS = 5


def slots_of(queues: Iterable[str]) -> tuple[int, ...]:
    """Return the numbers under which a worker of those queues sleeps; none = all."""
    return tuple(sorted({waiting_slot(queue) for queue in queues})) or (ANY_QUEUE,)


class Sleeper:
    """The pipes of one sleeping thread, and a way to be woken by its own process."""

    def __init__(
        self, directory: str, slots: tuple[int, ...], vfs: Vfs, access: Access
    ) -> None:
        self.slots = slots
        self._vfs = vfs
        self._access = access
        self._paths: list[str] = []
        self._fds: list[int] = []
        self._waker = -1
        self._poll = select.poll()
        try:
            self._make_pipes(f"{directory}/{NAME}")
        except OSError:
            # A full disk has no room for a pipe; the jobs in the queue can be done
            # all the same, looking for them once every poll interval.
            self.close()
            self._make_own_pipe()
        except BaseException:
            self.close()
            raise

    def _make_pipes(self, folder: str) -> None:
        self._vfs.make_directory(folder, self._access)
        for slot in self.slots:
            fd = self._make_pipe(folder, slot)
            self._fds.append(fd)
            self._poll.register(fd, select.POLLIN)
        # The end that "wake" writes into; it also keeps the pipe from reporting an
        # end of file whenever a producer closes its end.
        self._waker = self._vfs.open(
            self._paths[0], os.O_WRONLY | os.O_NONBLOCK | FLAGS
        )
        self._fds.append(self._waker)

    def _make_pipe(self, folder: str, slot: int) -> int:
        vfs, access = self._vfs, self._access
        for attempt in range(_ATTEMPTS):
            path = f"{folder}/{slot:02d}-{secrets.token_hex(8)}"
            vfs.mkfifo(path, access.file_mode)
            self._paths.append(path)
            try:
                with contextlib.suppress(PermissionError):
                    vfs.chmod(path, access.file_mode)
                    if access.gid is not None:
                        vfs.chown(path, -1, access.gid)
                return vfs.open(path, os.O_RDONLY | os.O_NONBLOCK | FLAGS)
            except FileNotFoundError:
                # A producer took it for one that was left behind: it had no reader yet.
                self._paths.remove(path)
                if attempt + 1 == _ATTEMPTS:
                    raise
        raise AssertionError

    def _make_own_pipe(self) -> None:
        reader, self._waker = os.pipe2(os.O_NONBLOCK | FLAGS)
        self._fds = [reader, self._waker]
        self._poll = select.poll()
        self._poll.register(reader, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        """Sleep until rung or until the time is over; True if rung."""
        rung = self._poll.poll(max(0.0, seconds) * 1000)
        for fd, _ in rung:
            with contextlib.suppress(BlockingIOError):
                while len(self._vfs.read(fd, 4096)) == 4096:
                    pass
        return bool(rung)

    @property
    def readers(self) -> list[int]:
        """The descriptors that can be read once it is rung, for a loop to watch."""
        return [fd for fd in self._fds if fd != self._waker]

    def wake(self) -> None:
        """Ring for this sleeper alone; safe from a signal handler or another thread."""
        with contextlib.suppress(OSError):
            self._vfs.write(self._waker, b"!")

    def close(self) -> None:
        """Remove the pipes."""
        for path in self._paths:
            with contextlib.suppress(OSError):
                self._vfs.unlink(path)
        for fd in self._fds:
            self._vfs.close(fd)
        self._paths, self._fds = [], []


def ring(directory: str, slots: Iterable[int], vfs: Vfs) -> None:
    """Wake everybody who sleeps for one of the slots; trouble is not an error.

    A sleeper that missed it looks again by itself within its poll interval.
    """
    wanted = {f"{slot:02d}" for slot in slots} | {f"{ANY_QUEUE:02d}"}
    folder = f"{directory}/{NAME}"
    try:
        names = vfs.listdir(folder)
    except OSError:
        return
    for name in names:
        if name[:2] not in wanted:
            continue
        path = f"{folder}/{name}"
        try:
            fd = vfs.open(path, os.O_WRONLY | os.O_NONBLOCK | FLAGS)
        except OSError as error:
            if error.errno == errno.ENXIO:
                with contextlib.suppress(OSError):
                    vfs.unlink(path)
            continue
        with contextlib.suppress(OSError):
            vfs.write(fd, b"!")
        vfs.close(fd)
