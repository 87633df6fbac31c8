"""A second index of a log, built anew in a place of its own and thrown away after use."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator

import lmdb

from .changes import Changes
from .errors import StorageError
from .index import Index
from .log import STRETCH
from .store import Store

#: Called with how much is done and how much there is; bytes of the log.
Progress = Callable[[int, int], object]

#: Room that is left free for others where the second index goes.
_SPARE = 64 * 1024 * 1024


def unwatched(_done: int, _total: int) -> None:
    """Be the progress that nobody looks at."""


@contextlib.contextmanager
def replica(store: Store) -> Iterator[Index]:
    """Lend an empty index of the store's log that nobody else sees."""
    folder = _folder(store)
    try:
        index = Index(
            store.log, store_id=bytes(16), boot_id=store.clock.boot_id(), root=folder
        )
        try:
            yield index
        except lmdb.Error as error:
            msg = f"A second index could not be built in {folder}: {error}"
            raise StorageError(msg) from error
        finally:
            index.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _folder(store: Store) -> str:
    """Make a directory in the best place that has room for a second index."""
    needed = 2 * store.index.used_bytes + _SPARE
    problem: OSError | None = None
    # Stable: of the places with room, the one that the index itself prefers.
    for root in sorted(store.index.roots, key=lambda root: _free(root) < needed):
        try:
            return tempfile.mkdtemp(prefix="nobroker-second-", dir=root)
        except OSError as error:
            problem = error
    msg = f"No place for a second index in {', '.join(store.index.roots)}: {problem}"
    raise StorageError(msg) from problem


def _free(root: str) -> int:
    try:
        return shutil.disk_usage(root).free
    except OSError:
        return 0


def grow(
    index: Index,
    end: int,
    changes_of: Callable[[lmdb.Transaction], Changes] = Changes,
    *,
    progress: Progress = unwatched,
) -> None:
    """Apply the log up to ``end``, by the one replay that there is, telling how far it is.

    ``end`` is where a whole transaction ends. ``changes_of`` may return changes that
    look at what they are given.
    """
    size = STRETCH
    first: int | None = None
    while True:
        txn = index.begin_changes().txn
        try:
            changes = changes_of(txn)
            start = changes.meta.applied
            first = start if first is None else first
            moved = index.apply_stretch(changes, end, size)
            changes.flush()
        except BaseException:
            txn.abort()
            raise
        txn.commit()
        progress(min(changes.meta.applied, end) - first, end - first)
        if changes.meta.applied >= end or (not moved and size > end - start):
            return
        size = STRETCH if moved else size * 2


def applied(index: Index) -> int:
    """Return the position up to which an index has followed the log."""
    changes = index.begin_changes()
    changes.txn.abort()
    return changes.meta.applied
