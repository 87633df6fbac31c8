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


def slots_of(queues: Iterable[str]) -> tuple[int, ...]:
    """Return the numbers under which a worker of those queues sleeps; none = all."""
    return tuple(sorted({waiting_slot(queue) for queue in queues})) or (ANY_QUEUE,)


class Sleeper:
    """The pipes of one sleeping thread, and a way to be woken by its own process."""

    def __init__(
        self, directory: str, slots: tuple[int, ...], vfs: Vfs, access: Access
    ) -> None:
        self.slots = slots
        self._paths: list[str] = []
        self._fds: list[int] = []
        folder = f"{directory}/{NAME}"
        vfs.make_directory(folder, access)
        name = secrets.token_hex(8)
        try:
            for slot in slots:
                path = f"{folder}/{slot:02d}-{name}"
                vfs.mkfifo(path, access.file_mode)
                self._paths.append(path)
                with contextlib.suppress(PermissionError):
                    vfs.chmod(path, access.file_mode)
                    if access.gid is not None:
                        vfs.chown(path, -1, access.gid)
                self._fds.append(vfs.open(path, os.O_RDONLY | os.O_NONBLOCK | FLAGS))
            # The end that "wake" writes into; it also keeps the pipe from
            # reporting an end of file whenever a producer closes its end.
            self._waker = vfs.open(self._paths[0], os.O_WRONLY | os.O_NONBLOCK | FLAGS)
            self._fds.append(self._waker)
        except BaseException:
            self.close()
            raise
        self._poll = select.poll()
        for fd in self._fds[:-1]:
            self._poll.register(fd, select.POLLIN)

    def wait(self, seconds: float) -> bool:
        """Sleep until rung or until the time is over; True if rung."""
        rung = self._poll.poll(max(0.0, seconds) * 1000)
        for fd, _ in rung:
            with contextlib.suppress(BlockingIOError):
                while len(os.read(fd, 4096)) == 4096:
                    pass
        return bool(rung)

    def wake(self) -> None:
        """Ring for this sleeper alone; safe from a signal handler or another thread."""
        with contextlib.suppress(OSError):
            os.write(self._waker, b"!")

    def close(self) -> None:
        """Remove the pipes."""
        for path in self._paths:
            with contextlib.suppress(OSError):
                os.unlink(path)
        for fd in self._fds:
            os.close(fd)
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
