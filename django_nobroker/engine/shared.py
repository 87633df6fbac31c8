"""One store per directory and process, whatever many queues use it.

LMDB allows one environment per path and process. A store is given back with
``close_store``; the last user to do so closes it.
"""

from __future__ import annotations

import os
import threading

from .store import Store

# Protects the table; held while a store is opened or closed, taken before any
# other lock of the engine.
_mutex = threading.Lock()
_stores: dict[str, tuple[Store, int]] = {}


def open_store(
    path: str | os.PathLike[str], *, read_only: bool = False, **options: object
) -> Store:
    """Return this process's store of a directory, opening it if need be.

    One that is open for looking is opened for writing too unless ``read_only``.
    ``options`` are those of :class:`Store` and count for the one who opens.
    """
    directory = os.path.realpath(os.fspath(path))
    with _mutex:
        store, users = _stores.get(directory, (None, 0))
        if store is None or store.closed:
            store = Store(directory, read_only=read_only, **options)  # type: ignore[arg-type]
            users = 0
        elif not read_only:
            store.open_to_write()
        _stores[directory] = (store, users + 1)
        return store


def close_store(store: Store) -> None:
    """Give a store back; the last user closes it."""
    with _mutex:
        shared, users = _stores.get(store.directory, (None, 0))
        if shared is not store:
            return
        if users > 1:
            _stores[store.directory] = (store, users - 1)
            return
        del _stores[store.directory]
        store.close()


def _after_fork() -> None:
    global _mutex  # noqa: PLW0603 - a thread of the parent may hold it, and is not here
    _mutex = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
