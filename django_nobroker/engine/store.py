"""Opening and closing a store; wires the parts and has no logic of its own.

A forked child goes on with the same objects, which open everything anew.
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
from .control import END, FAILED, LOW, SEGMENT, ControlPage
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
from .logend import Parts
from .record import Enqueue
from .recovery import Recovery, RecoveryReport
from .survey import Survey, refuse_foreign, survey
from .tables import Tables
from .transaction import Transaction
from .vfs import Access, Vfs
from .writer import Writer

T = TypeVar("T")

SEGMENT_SIZE = 64 * 1024 * 1024


#: Every open store of this process, for the fork hook.
_open_stores: weakref.WeakSet[Store] = weakref.WeakSet()


class Store:
    """One store; with ``read_only`` for looking, until ``open_to_write`` is called.

    Looking needs read permission only, makes nothing and repairs nothing: it sees
    everything up to the last whole transaction.
    """

    control: ControlPage | None = None
    entrance: Leadership | None = None
    writer: Writer | None = None
    committer: Committer | None = None
    lock: StoreLock | None = None
    #: Bytes behind the last whole transaction that nobody has cut off yet.
    torn = 0

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
        self._index_root = index_root
        self._segment_size = segment_size
        self._lock_timeout = lock_timeout
        # Protects the opening for writing; taken before any other lock.
        self._opening = threading.Lock()
        self._surveyed: Survey | None = None
        #: Write one new job that asks for no decision, without a sync or with one;
        #: ``leadership``'s own methods once the store is open for writing.
        self.append: Callable[[Enqueue, float], None] = self._append
        self.append_durably: Callable[[Enqueue, float], None] = self._append
        try:
            if read_only:
                self.index = self._index_of(self._open_to_read())
            else:
                self._open_to_write()
        except OSError as error:
            self.log.close()
            raise self._not_opened(error) from error
        except BaseException:
            self.log.close()
            raise
        _open_stores.add(self)

    def _not_opened(self, error: OSError) -> Exception:
        if isinstance(error, NobrokerError):
            return error
        return storage_error(error, f"The store {self.directory} could not be opened")

    def _index_of(self, store_id: bytes) -> Index:
        return Index(
            self.log,
            store_id=store_id,
            boot_id=self.clock.boot_id(),
            root=self._index_root,
        )

    # --- looking ------------------------------------------------------------------

    def _open_to_read(self) -> bytes:
        """Find out where the log ends, and return the store's id."""
        self.vfs.stat(self.directory)
        if not self.log.refresh():
            msg = f"{self.directory} holds no job log."
            raise CorruptLogError(msg)
        control = self._current_control()
        if control is not None:
            self._believe(control)
            return control.store_id
        # Nobody opened it for writing in this boot: the bytes tell the end.
        found = self._surveyed = survey(self.log, self.directory, self.vfs)
        self.torn = found.size_end - found.end
        self.recovery = RecoveryReport(
            records_scanned=found.records,
            damage=tuple((one.start, one.end) for one in found.damage),
        )
        return bytes.fromhex(found.store) if found.store else bytes(16)

    def _current_control(self) -> ControlPage | None:
        there = self.vfs.stat(self.directory)
        control = ControlPage.open_to_read(self.directory, self.vfs)
        if control is not None and not control.is_current(self.clock.boot_id(), there):
            control.close()
            return None
        return control

    def _believe(self, control: ControlPage) -> None:
        words = control.words
        self.control = control
        self.log.newest = lambda: int(words[SEGMENT])
        self.log.low = lambda: int(words[LOW])
        self._surveyed = None
        self.torn = 0

    @property
    def end(self) -> int:
        """The position after the last whole transaction."""
        if self.control is None:
            # Somebody may have opened the store for writing meanwhile.
            self._open_to_read()
        if self._surveyed is not None:
            return self._surveyed.end
        assert self.control is not None
        return int(self.control.words[END])

    # --- writing ------------------------------------------------------------------

    @property
    def is_writable(self) -> bool:
        """Whether it was opened for writing."""
        return self.entrance is not None

    def open_to_write(self) -> None:
        """Open it for writing too, making or repairing what is needed."""
        with self._opening:
            if self.entrance is None and not self.closed:
                try:
                    self._open_to_write()
                except OSError as error:
                    raise self._not_opened(error) from error

    def _open_to_write(self) -> None:
        self.vfs.make_directories(self.directory, self.access)
        refuse_foreign(self.log, self.directory, self.vfs)
        lock = StoreLock(self.directory, self.vfs, self.access, self.clock)
        try:
            with lock.held(self._lock_timeout):
                control = ControlPage.open(self.directory, self.vfs, self.access)
                self.recovery = Recovery(
                    self.directory, self.log, control, self.clock, self.vfs, self.access
                ).run()
        except BaseException:
            lock.close()
            raise
        self._believe(control)
        self.lock = lock
        if not hasattr(self, "index"):
            self.index = self._index_of(control.store_id)
        self.committer = Committer(self.log, control, self.vfs)
        writer = Writer(
            Parts(
                directory=self.directory,
                control=control,
                log=self.log,
                index=self.index,
                lock=lock,
                clock=self.clock,
                vfs=self.vfs,
                access=self.access,
                segment_size=self._segment_size,
            )
        )
        self.writer = writer
        entrance = Leadership(self.directory, writer, self.committer, self.vfs)
        self.append, self.append_durably = entrance.append, entrance.append_durably
        self.entrance = entrance

    # --- what the operations use ------------------------------------------------

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

    def commit(self, position: int) -> None:
        """Make everything before a position durable."""
        if self.committer is None or self.closed:
            raise self._refusal()
        self.committer.commit(position)

    def look(self, action: Callable[[Tables], T]) -> T:
        """Return what ``action`` sees in an index that is caught up with the log."""
        if self.closed:
            raise self._refusal()
        return self.index.read(
            self.end, action, wall=self.clock.wall(), boot=self.clock.boot()
        )

    def _append(self, _record: Enqueue, _timeout: float) -> None:
        raise self._refusal()

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
        self._opening = threading.Lock()
        if self.lock is not None:
            self.lock.after_fork()
        if self.entrance is not None:
            self.entrance.after_fork()
        if self.committer is not None:
            self.committer.after_fork()
        self.index.after_fork()
        self.log.after_fork()


def _after_fork() -> None:
    for store in list(_open_stores):
        store.after_fork()


os.register_at_fork(after_in_child=_after_fork)
