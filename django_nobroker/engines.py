"""Keeps one handle of an engine per store and process.

Django makes a backend per thread and per asyncio task; they share what is kept
here. Nothing is opened before somebody asks.
"""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

from .options import Options
from .seam import Engine

_lock = threading.Lock()  # guards both, also while an engine is being made
_engines: dict[tuple[str, Options], Engine] = {}  # by the store's real path
_known: dict[tuple[str, Options], Engine] = {}  # by any path, to find it fast


def engine_for(options: Options, *, alias: str) -> Engine:
    """Return the engine of the store ``options.directory``, made on first use."""
    engine = _known.get((alias, options))
    if engine is None:
        real = replace(options, directory=Path(os.path.realpath(options.directory)))
        with _lock:
            engine = _engines.get((alias, real))
            if engine is None:
                engine = _engines[alias, real] = make_engine(real, alias=alias)
            _known[alias, options] = engine
    return engine


def opened(directory: Path) -> list[Engine]:
    """Return the engines that were made for a store in this process."""
    with _lock:
        return [
            engine
            for (_, options), engine in _engines.items()
            if options.directory == Path(os.path.realpath(directory))
        ]


def make_engine(options: Options, *, alias: str) -> Engine:
    """Make the engine that ``options`` ask for; today that is the embedded log."""
    from .embedded import EmbeddedEngine

    return EmbeddedEngine.from_options(options, alias=alias)


def _forget_lock() -> None:
    global _lock  # noqa: PLW0603 - a forked child must not inherit a held lock.
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)
