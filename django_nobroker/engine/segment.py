"""One file of the log: its name, how it is made, how its first record is read."""

from __future__ import annotations

import contextlib
import os
import re

from . import framing, record
from .errors import CorruptLogError, storage_error
from .record import SegmentStart
from .vfs import FLAGS, Access, Vfs

_NAME = re.compile(r"[0-9]{20}\.log")
#: The first record is far shorter; a longer one is not ours.
_START_LIMIT = 4096
#: What the beginning of a segment's first record may be, cut off anywhere.
_TORN = re.compile(
    rb"[0-9a-f]{0,8}|[0-9a-f]{8} [0-9]{0,8}|[0-9a-f]{8} [0-9]{8} (\{.*)?", re.DOTALL
)
_FIRST_WORDS = b'{"op":"segment","at":0,'


def file_name(position: int) -> str:
    """Return the name of the segment whose first byte has that position."""
    return f"{position:020d}.log"


def positions(directory: str, vfs: Vfs) -> list[int]:
    """Return the positions of the segments in a directory, lowest first."""
    return sorted(
        int(name[:20]) for name in vfs.listdir(directory) if _NAME.fullmatch(name)
    )


def sizes(directory: str, vfs: Vfs) -> list[tuple[int, int]]:
    """Return position and size in bytes of each segment, lowest position first.

    Raises ``StorageError`` if they cannot be looked at.
    """
    found = []
    try:
        for position in positions(directory, vfs):
            # One that compaction has just removed is none any more.
            with contextlib.suppress(FileNotFoundError):
                size = vfs.stat(f"{directory}/{file_name(position)}").st_size
                found.append((position, size))
    except OSError as error:
        raise storage_error(error, "The segments cannot be looked at") from error
    return found


def is_there(directory: str) -> bool:
    """Tell whether a directory holds any segment; makes nothing.

    Raises ``StorageError`` if it is there and cannot be looked into.
    """
    try:
        return bool(positions(directory, Vfs()))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(error, "The store cannot be looked into") from error


def create(
    directory: str, start: bytes, position: int, vfs: Vfs, access: Access
) -> int:
    """Make a segment with its first record and return its descriptor.

    The caller holds the flock and has not published any record of it, so a file of
    that name that is there already is the rest of a process that died at this place.
    """
    path = f"{directory}/{file_name(position)}"
    fd = vfs.create(path, os.O_RDWR | os.O_APPEND, access)
    try:
        vfs.ftruncate(fd, 0)
        vfs.write_all(fd, start)
    except BaseException:
        vfs.close(fd)
        raise
    return fd


def remove_before(directory: str, low: int, vfs: Vfs) -> int:
    """Remove the segments before a position, oldest first; return how many.

    The record that drops them is durable, and the position is published. Raises
    ``StorageError`` when the disk refuses; the next opening removes what is left.
    """
    try:
        gone = [one for one in positions(directory, vfs) if one < low]
        for position in gone:
            with contextlib.suppress(FileNotFoundError):
                vfs.unlink(f"{directory}/{file_name(position)}")
        if gone:
            vfs.sync_directory(directory)
    except OSError as error:
        raise storage_error(error, "A dropped segment cannot be removed") from error
    return len(gone)


def open_to_append(directory: str, position: int, vfs: Vfs) -> int:
    """Open a segment for reading and for writing at its end."""
    return vfs.open(
        f"{directory}/{file_name(position)}", os.O_RDWR | os.O_APPEND | FLAGS
    )


def open_to_read(directory: str, position: int, vfs: Vfs) -> int:
    """Open a segment for reading only."""
    return vfs.open(f"{directory}/{file_name(position)}", os.O_RDONLY | FLAGS)


def is_unborn(directory: str, vfs: Vfs) -> bool:
    """Tell whether the log is one segment that ends within its first record.

    Such a store was never made to the end, so nothing in it was promised.
    """
    if positions(directory, vfs) != [0]:
        return False
    fd = open_to_read(directory, 0, vfs)
    try:
        head = vfs.read_all(fd, 0, _START_LIMIT)
    finally:
        vfs.close(fd)
    if not _TORN.fullmatch(head):
        return False
    body = head[framing.HEADER :][: len(_FIRST_WORDS)]
    return _FIRST_WORDS.startswith(body) and (
        len(head) < framing.HEADER or len(head) < int(head[9:17]) + framing.FRAME
    )


def read_start(directory: str, position: int, vfs: Vfs) -> SegmentStart | None:
    """Return the first record of a segment, None if it is torn or damaged.

    Raises ``CorruptLogError`` when the file is of another kind or of a newer format.
    """
    fd = open_to_read(directory, position, vfs)
    try:
        head = vfs.read_all(fd, 0, _START_LIMIT)
    finally:
        vfs.close(fd)
    found = framing.decode_at(head, 0, position)
    if found is None or found[1] > len(head):
        return None
    start = found[0]
    name = file_name(position)
    if not isinstance(start, SegmentStart):
        msg = f"{name} does not begin as a segment of a job log; nothing was changed."
        raise CorruptLogError(msg)
    if start.format > record.FORMAT:
        msg = (
            f"{name} has format {start.format}, this version reads up to {record.FORMAT}: "
            "upgrade django-nobroker. Nothing was changed."
        )
        raise CorruptLogError(msg)
    return start
