"""A copy of a store that is in use: whole, verified, and never in the place of another.

Invariants, named in the code:

B1  The maintenance lock is held shared, so no segment is removed; writers go on.
B2  What is copied ends at one published end, where a whole transaction ends, and is
    durable in the origin first: a copy holds nothing that its origin might lose.
B3  The copy is made beside its final name, synced and checked, and renamed then. So it
    is whole or not there, and of several that race for a name one wins.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from . import integrity, segment, setaside
from .control import DURABLE
from .errors import DirectoryExistsError, StorageError, storage_error
from .locks import Maintenance
from .replica import Progress, unwatched
from .scan import Finding
from .store import Store
from .vfs import FLAGS

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupReport:
    """A copy that was made and checked; positions are byte offsets in the log.

    ``errors`` is the damage that the origin has and that its copy therefore has, too;
    ``ok`` is whether there is none.
    """

    ok: bool
    directory: str
    store: str  # the id, which the copy shares with its origin
    end: int  # everything before it is in the copy
    log_bytes: int
    segments: int
    records: int
    errors: tuple[Finding, ...]
    seconds: float

    def to_dict(self) -> dict[str, object]:
        """Return plain values, as JSON has them."""
        plain: dict[str, object] = msgspec.json.decode(msgspec.json.encode(self))
        return plain


def backup(
    store: Store,
    directory: str | os.PathLike[str],
    *,
    progress: Progress = unwatched,
) -> BackupReport:
    """Copy a store to a new directory, while it is used, and check the copy.

    The parent directory has to exist. Raises ``DirectoryExistsError`` when there is
    something of that name, ``ValueError`` for a place inside the store and
    ``StorageError`` when the disk refuses; then nothing is left of the copy.
    """
    began = store.clock.monotonic()
    target = os.path.abspath(os.fspath(directory))
    _check_target(store, target)
    temporary = (
        f"{os.path.dirname(target)}/.{os.path.basename(target)[:200]}"
        f".incomplete-{secrets.token_hex(6)}"
    )
    copy = _Copy(store, temporary, progress)
    try:
        with Maintenance(store.directory, store.vfs, store.clock).shared():  # B1
            end = _settled_end(store)
            copy.make(end)
        found = copy.checked()
        copy.move(target)
    except BaseException as error:
        copy.remove()
        if isinstance(error, OSError):
            raise storage_error(error, "The backup could not be made") from error
        raise
    return BackupReport(
        ok=found.ok,
        directory=target,
        store=copy.identity,
        end=end,
        log_bytes=copy.log_bytes,
        segments=found.segments,
        records=found.records,
        errors=found.errors,
        seconds=store.clock.monotonic() - began,
    )


def _check_target(store: Store, target: str) -> None:
    inside = os.path.realpath(store.directory)
    parent = os.path.realpath(os.path.dirname(target))
    if os.path.commonpath([inside, parent]) == inside:
        msg = f"A backup cannot go into the store itself: {target}"
        raise ValueError(msg)
    if os.path.lexists(target):
        raise _exists(target)
    if not os.path.isdir(parent):
        raise StorageError(
            errno.ENOENT, "The directory for the backup is not there", parent
        )


def _exists(target: str) -> DirectoryExistsError:
    return DirectoryExistsError(
        errno.EEXIST,
        "There is something of that name, and a backup never overwrites",
        target,
    )


def _settled_end(store: Store) -> int:
    """Return the end of what is copied (B2)."""
    end = store.end
    if store.failed:
        # What is behind the durable position may be gone from the disk already.
        assert store.control is not None
        return int(store.control.words[DURABLE])
    if store.is_writable:
        store.commit(end)
    return end


class _Copy:
    """The files of a copy under its temporary name."""

    def __init__(self, store: Store, path: str, progress: Progress) -> None:
        self._store = store
        self._vfs = store.vfs
        self._path = path
        self._progress = progress
        self._folders: list[str] = []
        self._files: list[str] = []
        self._done = 0
        self._total = 0
        self.log_bytes = 0
        self.identity = ""

    def make(self, end: int) -> None:
        """Copy everything up to ``end``; the segments are opened before any is read."""
        store, vfs = self._store, self._vfs
        kept = setaside.listing(store.directory, vfs)
        sources: list[tuple[int, int, int]] = []
        try:
            bases = store.log.refresh()
            bases = [base for base in bases if base < end]
            for base, following in zip(bases, [*bases[1:], end], strict=True):
                fd = segment.open_to_read(store.directory, base, vfs)
                sources.append((base, following - base, fd))
            self.log_bytes = sum(size for _, size, _ in sources)
            self._total = 2 * self.log_bytes + sum(one.size for one in kept)
            self._make_folder(self._path, store.directory)
            for base, size, fd in sources:
                self._copy(fd, f"{self._path}/{segment.file_name(base)}", size)
        finally:
            for _, _, fd in sources:
                vfs.close(fd)
        if kept:
            folder = f"{self._path}/{setaside.NAME}"
            self._make_folder(folder, f"{store.directory}/{setaside.NAME}")
            for one in kept:
                self._copy_set_aside(one, folder)
            vfs.sync_directory(folder)
        vfs.sync_directory(self._path)

    def _copy_set_aside(self, one: setaside.SetAside, folder: str) -> None:
        name = f"{self._store.directory}/{setaside.NAME}/{one.name}"
        fd = self._vfs.open(name, os.O_RDONLY | FLAGS)
        try:
            self._copy(fd, f"{folder}/{one.name}", one.size)
        finally:
            self._vfs.close(fd)

    def _make_folder(self, path: str, like: str) -> None:
        there = self._vfs.stat(like)
        self._vfs.mkdir(path, 0o700)
        self._folders.append(path)
        self._grant(path, there)

    def _copy(self, source: int, path: str, size: int) -> None:
        """Copy the first ``size`` bytes of an open file durably, and read them back."""
        vfs = self._vfs
        there = vfs.fstat(source)
        fd = vfs.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | FLAGS, 0o600)
        self._files.append(path)
        try:
            self._grant(path, there)
            total, offset = 0, 0
            while offset < size:
                data = vfs.read_all(source, offset, min(_CHUNK, size - offset))
                if not data:
                    break  # the origin lacks bytes here; its copy lacks them, too
                vfs.write_all(fd, data)
                total = zlib.crc32(data, total)
                offset += len(data)
                self._advance(len(data))
            vfs.fsync(fd)
            if self._sum(fd, offset) != total:
                raise StorageError(errno.EIO, "The copy is not what was written", path)
        finally:
            vfs.close(fd)

    def _sum(self, fd: int, size: int) -> int:
        total, offset = 0, 0
        while offset < size:
            data = self._vfs.read_all(fd, offset, min(_CHUNK, size - offset))
            if not data:
                break
            total = zlib.crc32(data, total)
            offset += len(data)
        return total

    def checked(self) -> integrity.IntegrityReport:
        """Open the copy as anybody would, and look at every record of it."""
        store = self._store
        copy = Store(
            self._path,
            read_only=True,
            access=store.access,
            index_root=store.index.roots[0],
            vfs=store.vfs,
            clock=store.clock,
        )
        before = self._done
        try:
            self.identity = segment_identity(copy)
            return integrity.check(
                copy,
                progress=lambda done, _total: self._tell(before + done),
            )
        finally:
            copy.index.discard()
            copy.close()

    def move(self, target: str) -> None:
        """Give the copy its final name, unless there is something of that name (B3)."""
        vfs, path = self._vfs, self._path
        if os.path.lexists(target):
            raise _exists(target)
        try:
            vfs.rename(path, target)
        except OSError as error:
            # A rival was faster, and no rename replaces a directory with files in it.
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise _exists(target) from error
            raise
        self._files = [target + name[len(path) :] for name in self._files]
        self._folders = [target + name[len(path) :] for name in self._folders]
        vfs.sync_directory(os.path.dirname(target))

    def _grant(self, path: str, there: os.stat_result) -> None:
        mode = stat.S_IMODE(there.st_mode)
        try:
            self._vfs.chown(path, -1, there.st_gid)
        except PermissionError:
            # Not of that group ourselves: then the copy is for its owner alone.
            mode &= ~0o077
        self._vfs.chmod(path, mode)

    def _advance(self, size: int) -> None:
        self._tell(self._done + size)
        self._done += size

    def _tell(self, done: int) -> None:
        self._progress(min(done, self._total), self._total)

    def remove(self) -> None:
        """Remove what was made, and nothing else."""
        removals: list[tuple[Callable[[str], None], str]] = [
            *((self._vfs.unlink, path) for path in self._files),
            *((self._vfs.rmdir, path) for path in reversed(self._folders)),
        ]
        for remove, path in removals:
            try:
                remove(path)
            except OSError:
                continue


def segment_identity(store: Store) -> str:
    """Return the id that the first segment of a store names, "" if it is damaged."""
    start = segment.read_start(store.directory, store.log.first, store.vfs)
    return "" if start is None else start.store
