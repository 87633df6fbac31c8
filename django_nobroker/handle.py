"""One process's hold on the store of a backend: opened late, for looking first."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .engine import segment
from .engine.shared import close_store, open_store
from .engine.store import Store
from .engine.tables import Tables
from .engine.vfs import Access

if TYPE_CHECKING:
    from .options import Options

T = TypeVar("T")

#: Every handle of this process, for the fork hook.
_handles: weakref.WeakSet[StoreHandle] = weakref.WeakSet()


class StoreHandle:
    """Opens the store on the first question, for writing only when that is needed."""

    def __init__(self, options: Options) -> None:
        self._options = options
        # Protects the opening; taken before any lock of the engine.
        self._mutex = threading.Lock()
        self._opened: Store | None = None
        _handles.add(self)

    @property
    def store(self) -> Store:
        """The store, open for writing; made if it is missing."""
        store = self._opened
        if store is None or store.closed or not store.is_writable:
            store = self._open(read_only=False)
        return store

    def _open(self, *, read_only: bool) -> Store:
        with self._mutex:
            store = self._opened
            if store is None or store.closed:
                options = self._options
                store = self._opened = open_store(
                    options.directory,
                    read_only=read_only,
                    access=Access.of(options.file_mode, options.group),
                    index_root=options.index_directory and str(options.index_directory),
                )
            elif not read_only:
                store.open_to_write()
        return store

    def look(self, action: Callable[[Store, Tables], T], nothing: T) -> T:
        """Return what an action sees; ``nothing`` where no store was made yet.

        Looking makes and repairs nothing, and takes no lock of the store.
        """
        store = self._opened
        if store is None or store.closed:
            if not segment.is_there(str(self._options.directory)):
                return nothing
            store = self._open(read_only=True)
        return store.look(lambda tables: action(store, tables))

    def close(self) -> None:
        """Give the store back; the next question opens it again."""
        with self._mutex:
            store, self._opened = self._opened, None
            if store is not None:
                close_store(store)

    def after_fork(self) -> None:
        """Forget the threads of the parent: one may have held the lock."""
        self._mutex = threading.Lock()


def _after_fork() -> None:
    for handle in list(_handles):
        handle.after_fork()


os.register_at_fork(after_in_child=_after_fork)
