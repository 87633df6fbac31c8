"""What a repair takes out of the log is kept, never thrown away."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass

from . import framing
from .errors import StorageError, storage_error
from .vfs import FLAGS, Access, Vfs

NAME = "set-aside"
#: Why bytes were taken out, as the file's name tells it.
TORN, DAMAGED, HOLE = "torn", "damaged", "hole"
_REASONS = {
    TORN: "the unfinished end of the log; nobody was promised anything in it",
    DAMAGED: "damaged after it was acknowledged",
    HOLE: "damaged, and never acknowledged",
}
_FILE = re.compile(r"(?P<position>[0-9]{20})-(?P<number>[0-9]+)(?:\.(?P<why>[a-z]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """Bytes that a repair took out of the log; positions are byte offsets in it."""

    name: str
    start: int
    end: int
    size: int
    kept_at: float  # seconds since the epoch
    why: str  # a few words; "" if it is not known


def keep(
    directory: str,
    position: int,
    data: bytes,
    vfs: Vfs,
    access: Access,
    *,
    why: str = "",
) -> str:
    """Write bytes that stood at ``position`` to a file of their own, durably.

    Returns the file's name. The same place may be cut more than once, so a
    number is counted up until the name is free. Raises ``StorageError``.
    """
    try:
        return _keep(directory, position, data, vfs, access, why)
    except OSError as error:
        raise storage_error(error, "What is cut off could not be kept") from error


def _keep(
    directory: str, position: int, data: bytes, vfs: Vfs, access: Access, why: str
) -> str:
    folder = f"{directory}/{NAME}"
    vfs.make_directory(folder, access)
    number = 0
    while True:
        name = f"{position:020d}-{number}" + (f".{why}" if why else "")
        path = f"{folder}/{name}"
        try:
            fd = vfs.open(
                path,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
                access.file_mode,
            )
        except FileExistsError:
            number += 1
            continue
        break
    try:
        vfs.write_all(fd, data)
        vfs.fdatasync(fd)
    finally:
        vfs.close(fd)
    vfs.sync_directory(folder)
    # The folder's own name too: whoever made it may have died before it was durable.
    vfs.sync_directory(directory)
    return name


def listing(directory: str, vfs: Vfs) -> tuple[SetAside, ...]:
    """Return what was ever set aside in a store, in the order of the log."""
    folder = f"{directory}/{NAME}"
    found = []
    try:
        for name in sorted(vfs.listdir(folder)):
            named = _FILE.fullmatch(name)
            if named is None:
                continue
            there = vfs.stat(f"{folder}/{name}")
            start = int(named["position"])
            found.append(
                SetAside(
                    name=name,
                    start=start,
                    end=start + there.st_size,
                    size=there.st_size,
                    kept_at=there.st_mtime,
                    why=_REASONS.get(named["why"] or "", ""),
                )
            )
    except FileNotFoundError:
        pass  # nothing was ever set aside
    except OSError as error:
        raise storage_error(error, "What was set aside cannot be looked at") from error
    return tuple(found)


def read(directory: str, name: str, vfs: Vfs) -> bytes:
    """Return the bytes of one file; ``StorageError`` if there is none of that name."""
    if _FILE.fullmatch(name) is None:
        raise StorageError(errno.ENOENT, "Nothing of that name was set aside", name)
    try:
        fd = vfs.open(f"{directory}/{NAME}/{name}", os.O_RDONLY | FLAGS)
    except OSError as error:
        raise storage_error(error, "What was set aside cannot be read") from error
    try:
        return vfs.read_all(fd, 0, vfs.fstat(fd).st_size)
    finally:
        vfs.close(fd)


def records(entry: SetAside, data: bytes) -> framing.Decoded:
    """Return the whole records in what was set aside, and what is none."""
    return framing.decode_stretch(data, entry.start, final=True)
