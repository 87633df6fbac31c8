"""Making the log durable, and telling everybody how far it is.

Invariants, named in the code:

C1  The end is read before the sync begins and published after it has succeeded:
    whatever was written meanwhile may or may not be on disk.
C2  The end is read before the active segment is: then everything up to that end
    is in that segment or in older ones.
C3  A failed sync is final. The kernel may have dropped the pages and marked them
    clean, so a second sync would lie. The flag in the control page stops every
    process, and nothing is acknowledged from then on.
C4  No lock of the store is held: other processes append meanwhile, and the file
    system merges syncs that run at once.
"""

from __future__ import annotations

import threading

from . import segment
from .control import DURABLE, END, FAILED, SEGMENT, ControlPage
from .errors import StorageError, StoreFailedError, storage_error
from .log import Log
from .vfs import Vfs


def failed(directory: str) -> StoreFailedError:
    """Return the error of a store whose sync has failed."""
    return StoreFailedError(
        5,
        "A sync of the log failed, so nothing is acknowledged any more; check the disk, "
        "then remount it or restart the machine",
        directory,
    )


class Committer:
    """Syncs of one store by one process."""

    def __init__(self, log: Log, control: ControlPage, vfs: Vfs) -> None:
        self._log = log
        self._control = control
        self._vfs = vfs
        # Protects the descriptor, and lets one sync of this process run at a time:
        # whoever waited finds that it is durable already. Taken without any other.
        self._mutex = threading.Lock()
        self._synced: tuple[int, int] | None = None  # segment, descriptor
        self._closed = False

    def commit(self, position: int) -> None:
        """Return when everything before ``position`` is durable.

        Raises ``StoreFailedError`` when that cannot be known any more.
        """
        words = self._control.words
        with self._mutex:
            if words[FAILED]:
                raise failed(self._log.directory)
            durable = words[DURABLE]
            if durable >= position:
                return
            end = words[END]  # C1
            base = words[SEGMENT]  # C2
            try:
                if base < durable:
                    self._vfs.fdatasync(self._descriptor(base))
                else:
                    self._log.sync(durable, end)
            except StorageError:
                raise  # no sync was tried, so nothing is known to have failed
            except OSError as error:
                words[FAILED] = 1  # C3
                raise failed(self._log.directory) from error
            if words[FAILED]:
                raise failed(self._log.directory)
            words[DURABLE] = max(words[DURABLE], end)
            if self._closed:  # a thread that was on its way when the store was closed
                self._forget()

    def _descriptor(self, base: int) -> int:
        if self._synced is None or self._synced[0] != base:
            try:
                fd = segment.open_to_append(self._log.directory, base, self._vfs)
            except OSError as error:
                raise storage_error(error, "The log could not be opened") from error
            self._forget()
            self._synced = (base, fd)
        return self._synced[1]

    def close(self) -> None:
        """Close the descriptor, once no sync is using it."""
        with self._mutex:
            self._closed = True
            self._forget()

    def _forget(self) -> None:
        if self._synced is not None:
            self._vfs.close(self._synced[1])
            self._synced = None

    def after_fork(self) -> None:
        """Open the segment anew on the next use."""
        self._mutex = threading.Lock()
        self._forget()
