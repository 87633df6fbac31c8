"""Keeps one handle of an engine per store and process.

Django makes a backend per thread and per asyncio task; they share what is kept
here. Nothing is opened before somebody asks.
"""

from __future__ import annotations

import os
import threading

from .options import Options
from .seam import Engine

_lock = threading.Lock()  # guards _open_engines, also while an engine is being made
_open_engines: dict[tuple[str, str, Options], Engine] = {}


def engine_for(options: Options, *, alias: str) -> Engine:
    """Return the engine of the store ``options.directory``, made on first use."""
    key = (os.path.realpath(options.directory), alias, options)
    engine = _open_engines.get(key)
    if engine is None:
        with _lock:
            engine = _open_engines.get(key)
            if engine is None:
                engine = _open_engines[key] = make_engine(options, alias=alias)
    return engine


def make_engine(options: Options, *, alias: str) -> Engine:
    """Make the engine that ``options`` ask for; today that is the embedded log."""
    from .embedded import EmbeddedEngine

    return EmbeddedEngine.from_options(options, alias=alias)


def _forget_lock() -> None:
    global _lock  # noqa: PLW0603 - a forked child must not inherit a held lock.
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)
