"""What a repair takes out of the log is kept, never thrown away."""

from __future__ import annotations

import os

from .vfs import Access, Vfs

NAME = "set-aside"


def keep(directory: str, position: int, data: bytes, vfs: Vfs, access: Access) -> str:
    """Write bytes that stood at ``position`` to a file of their own, durably.

    Returns the file's name. The same place may be cut more than once, so a
    number is counted up until the name is free.
    """
    folder = f"{directory}/{NAME}"
    vfs.make_directory(folder, access)
    number = 0
    while True:
        name = f"{position:020d}-{number}"
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
    return name
