"""Where an index lives: its name, its private directory, and those left behind.

A name holds everything that makes a replica this one: store id, device and
inode of the store's directory, boot id, PID namespace and format.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterator

from . import host
from .errors import StorageError

_PARTS = 6
_NOTE = "store"


def name(store_id: bytes, boot_id: bytes, directory: os.stat_result, form: int) -> str:
    """Return the name of the replica of a store, here and in this boot."""
    return (
        f"{store_id.hex()[:16]}-{directory.st_dev:x}-{directory.st_ino:x}-"
        f"{boot_id.hex()[:12]}-{host.pid_namespace():x}-{form}"
    )


@contextlib.contextmanager
def locked(parent: str) -> Iterator[None]:
    """Let one process at a time open a replica in a directory, or throw one away.

    LMDB opens two files by their names: replaced in between, they would not belong
    together. A leaf among the locks, held while files are opened and no longer.
    """
    fd = os.open(parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            # Said aloud: a child forked meanwhile has the descriptor, too.
            fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        os.close(fd)


def write_note(path: str, directory: str) -> None:
    """Note which store a replica belongs to, for whoever sweeps."""
    note = f"{path}/{_NOTE}"
    if not os.path.exists(note):
        fd = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, os.fsencode(directory))
        finally:
            os.close(fd)


def sweep(parent: str, *, keep: str) -> None:
    """Remove this user's replicas of other boots, and of stores that are gone.

    Those of another PID namespace in this boot stay: its stores may be mounted
    elsewhere.
    """
    _, _, _, boot, namespace, _ = keep.split("-")
    for entry in os.listdir(parent):
        parts = entry.split("-")
        if entry == keep or len(parts) != _PARTS:
            continue
        path = f"{parent}/{entry}"
        half_gone = "." in entry  # whoever threw it away died over it
        orphan = parts[4] == namespace and _is_orphan(path, parts)
        if half_gone or orphan or parts[3] != boot:
            shutil.rmtree(path, ignore_errors=True)


def _is_orphan(path: str, parts: list[str]) -> bool:
    try:
        with open(f"{path}/{_NOTE}", "rb") as note:
            store = note.read()
    except OSError:
        return False  # somebody is just making it
    try:
        there = os.stat(store)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return [f"{there.st_dev:x}", f"{there.st_ino:x}"] != parts[1:3]


def close_on_exec(path: str) -> None:
    """Keep a replica's data file from programs that this process starts.

    LMDB opens it so that it would be handed on, and does not tell its descriptor.
    """
    there = os.stat(f"{path}/data.mdb")
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # another thread may close one meanwhile
            if os.path.samestat(os.fstat(int(name)), there):
                os.set_inheritable(int(name), False)


def private_directory(path: str) -> str:
    """Make a directory that only this user may enter, and verify that it is one."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    there = os.lstat(path)
    if (
        not stat.S_ISDIR(there.st_mode)
        or there.st_uid != os.getuid()
        or there.st_mode & 0o077
    ):
        # Such places are world-writable: somebody else may have been here first.
        msg = f"{path} is not a directory that belongs to this user alone"
        raise StorageError(msg)
    return path


def throw_away(path: str) -> None:
    """Remove a replica; whoever has it open keeps it until it closes it."""
    # Renamed first, so that nobody opens it while it is being removed.
    gone = f"{path}.{secrets.token_hex(4)}"
    with contextlib.suppress(OSError):
        os.rename(path, gone)
    shutil.rmtree(gone, ignore_errors=True)
