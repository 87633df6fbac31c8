"""Opening and closing a store; wires the parts and has no logic of its own.

One process has one :class:`Store` per directory, whatever many queues use it:
LMDB allows one environment per path and process. The store is given back with
``close``; the last one to do so closes it. A forked child goes on with the
same objects, which open everything anew.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

from .clock import Clock
from .commit import Committer
from .control import END, FAILED, SEGMENT, ControlPage
from .errors import (
    CorruptLogError,
    NobrokerError,
    QueueClosedError,
    StorageError,
    storage_error,
)
from .index import Index
from .leadership import Leadership
from .locks import StoreLock
from .log import Log
from .record import Enqueue
from .recovery import Recovery, RecoveryReport
from .survey import refuse_foreign, survey
from .tables import Tables
from .transaction import Transaction
from .vfs import Access, Vfs
from .writer import Parts, Writer

T = TypeVar("T")

SEGMENT_SIZE = 64 * 1024 * 1024


class Store:
    """One store, opened for writing or, with ``read_only``, for looking."""

    def __init__(  # noqa: PLR0913 - each is an option or a seam of its own
        self,
        directory: str,
        *,
        read_only: bool = False,
        access: Access | None = None,
        index_root: str | None = None,
        segment_size: int = SEGMENT_SIZE,
        lock_timeout: float = 10.0,
        vfs: Vfs | None = None,
        clock: Clock | None = None,
    ) -> None:
        if sys.platform == "win32":
            msg = "django-nobroker stores need Linux or macOS; on Windows nothing can be opened."
            raise StorageError(msg)
        self.directory = directory
        self.vfs = vfs or Vfs()
        self.clock = clock or Clock()
        self.access = access or Access()
        self.closed = False
        self.log = Log(directory, self.vfs, self.access)
        self.recovery = RecoveryReport()
        self._end: Callable[[], int]
        try:
            if read_only:
                self._open_to_read(index_root)
            else:
                self._open_to_write(index_root, segment_size, lock_timeout)
        except OSError as error:
            self.log.close()
            if isinstance(error, NobrokerError):
                raise
            raise storage_error(
                error, f"The store {directory} could not be opened"
            ) from error
        except BaseException:
            self.log.close()
            raise
        _open_stores.add(self)

    def _open_to_write(
        self, index_root: str | None, segment_size: int, timeout: float
    ) -> None:
        self._make_directories()
        refuse_foreign(self.log, self.directory, self.vfs)
        lock = StoreLock(self.directory, self.vfs, self.access)
        try:
            with lock.held(timeout):
                control = ControlPage.open(self.directory, self.vfs, self.access)
                self.recovery = Recovery(
                    self.directory, self.log, control, self.clock, self.vfs, self.access
                ).run()
        except BaseException:
            lock.close()
            raise
        words = control.words
        self.control = control
        self.log.newest = lambda: int(words[SEGMENT])
        self.lock = lock
        self._end = lambda: int(words[END])
        self.index = Index(
            self.log,
            store_id=control.store_id,
            boot_id=self.clock.boot_id(),
            root=index_root,
        )
        self.committer = Committer(self.log, control, self.vfs)
        writer = Writer(
            Parts(
                directory=self.directory,
                control=control,
                log=self.log,
                index=self.index,
                lock=lock,
                committer=self.committer,
                clock=self.clock,
                vfs=self.vfs,
                access=self.access,
                segment_size=segment_size,
            )
        )
        self.entrance = Leadership(self.directory, writer, self.committer, self.vfs)

    def _open_to_read(self, index_root: str | None) -> None:
        there = self.vfs.stat(self.directory)
        if not self.log.refresh():
            msg = f"{self.directory} holds no job log."
            raise CorruptLogError(msg)
        control = ControlPage.open_to_read(self.directory, self.vfs)
        if control is not None and control.is_current(self.clock.boot_id(), there):
            words = control.words
            store_id = control.store_id
            self.log.newest = lambda: int(words[SEGMENT])
            self._end = lambda: int(words[END])
            self.control = control
        else:
            if control is not None:
                control.close()
            # Nobody opened it for writing in this boot: the bytes tell the end.
            found = survey(self.log, self.directory, self.vfs)
            store_id = bytes.fromhex(found.store) if found.store else bytes(16)
            self._end = lambda: found.end
            self.recovery = RecoveryReport(
                repaired=False,
                records_scanned=found.records,
                bytes_cut=0,
                damage=tuple((one.start, one.end) for one in found.damage),
            )
            self.torn = found.size_end - found.end
        self.index = Index(
            self.log, store_id=store_id, boot_id=self.clock.boot_id(), root=index_root
        )

    def _make_directories(self) -> None:
        missing = []
        path = self.directory
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for path in reversed(missing):
            self.vfs.make_directory(path, self.access)
            self.vfs.sync_directory(os.path.dirname(path))

    # --- what the operations use ------------------------------------------------

    control: ControlPage | None = None
    entrance: Leadership | None = None
    committer: Committer | None = None
    lock: StoreLock | None = None
    torn: int = 0

    @property
    def end(self) -> int:
        """The position after the last whole record."""
        return self._end()

    @property
    def failed(self) -> bool:
        """Whether a sync has failed: nothing is acknowledged any more in this boot."""
        return self.control is not None and bool(self.control.words[FAILED])

    def run(
        self,
        decide: Callable[[Transaction], T],
        *,
        timeout: float,
        durable: bool,
        indexed: bool = True,
    ) -> T:
        """Let a decision happen; with ``durable`` it is on disk when this returns."""
        entrance = self.entrance
        if entrance is None or self.closed:
            raise self._refusal()
        if durable:
            return entrance.run_durably(decide, timeout=timeout, indexed=indexed)
        return entrance.run(decide, timeout=timeout, indexed=indexed)

    def append(self, record: Enqueue, timeout: float) -> None:
        """Write one new job that asks for no decision, without a sync."""
        entrance = self.entrance
        if entrance is None or self.closed:
            raise self._refusal()
        entrance.append(record, timeout)

    def commit(self, position: int) -> None:
        """Make everything before a position durable."""
        if self.entrance is None or self.closed:
            raise self._refusal()
        self.entrance.commit(position)

    def look(self, action: Callable[[Tables], T]) -> T:
        """Return what ``action`` sees in an index that is caught up with the log."""
        if self.closed:
            raise self._refusal()
        return self.index.read(
            self.end, action, wall=self.clock.wall(), boot=self.clock.boot()
        )

    def _refusal(self) -> NobrokerError:
        if self.closed:
            return QueueClosedError("The queue is closed.")
        return StorageError(30, "The store is open for reading only", self.directory)

    def close(self) -> None:
        """Close everything; later calls raise ``QueueClosedError``."""
        if self.closed:
            return
        self.closed = True
        _open_stores.discard(self)
        if self.lock is not None:
            self.lock.close()
        if self.committer is not None:
            self.committer.close()
        self.index.close()
        self.log.close()
        # The control page stays mapped until nobody refers to it: a thread that
        # is just leaving an operation may still read a word of it.

    def after_fork(self) -> None:
        """Give the child of a fork descriptors and locks of its own."""
        if self.lock is not None:
            self.lock.after_fork()
        if self.entrance is not None:
            self.entrance.after_fork()
        if self.committer is not None:
            self.committer.after_fork()
        self.index.after_fork()
        self.log.after_fork()


#: Every open store of this process, for the fork hook.
_open_stores: weakref.WeakSet[Store] = weakref.WeakSet()

# --- one store per directory and process --------------------------------------------

# Protects the table below; held while a store is opened or closed.
_mutex = threading.Lock()
_shared: dict[str, tuple[Store, int]] = {}


def open_store(path: str | os.PathLike[str], **options: object) -> Store:
    """Return this process's store of a directory, opening it if need be.

    ``options`` are those of :class:`Store` and count for the one who opens.
    """
    directory = os.path.realpath(os.fspath(path))
    with _mutex:
        store, users = _shared.get(directory, (None, 0))
        if store is None:
            store = Store(directory, **options)  # type: ignore[arg-type]
        _shared[directory] = (store, users + 1)
        return store


def close_store(store: Store) -> None:
    """Give a store back; the last user closes it."""
    with _mutex:
        shared, users = _shared.get(store.directory, (None, 0))
        if shared is not store:
            return
        if users > 1:
            _shared[store.directory] = (store, users - 1)
            return
        del _shared[store.directory]
        store.close()


def _after_fork() -> None:
    global _mutex  # noqa: PLW0603 - the parent's lock may be held by a thread that is not here
    _mutex = threading.Lock()
    for store in list(_open_stores):
        store.after_fork()


os.register_at_fork(after_in_child=_after_fork)
