"""Upkeep: what a worker does for its store beside the jobs, so that nobody has to.

Ended jobs leave when their time is over, and a log that holds mostly what nobody
needs is compacted. Any number of workers may try; one at a time compacts.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import lmdb

from django_nobroker.engine import compaction, retention
from django_nobroker.engine.errors import CompactionError, NobrokerError, StorageError
from django_nobroker.engine.retention import Retention, Terms
from django_nobroker.engine.store import Store
from django_nobroker.engine.tables import Meta, Tables

logger = logging.getLogger("django_nobroker.worker")

#: How long ended jobs of a queue stay; None for a queue whose options are not known.
TermsOf = Callable[[str], Terms | None]


def for_ever(_queue: str) -> Terms | None:
    """Let ended jobs of every queue stay."""
    return None


#: Seconds between two looks, and after an error.
_PAUSE, _LONG_PAUSE = 1.0, 60.0
#: Every ended job stays so many seconds, so that its end can be seen.
_LEAST = 60.0
#: A log with less than this to give back is left alone.
_WORTH_IT = 8 << 20


def is_due(meta: Meta, first: int) -> bool:
    """Tell whether a compaction gives more back than it has to write again.

    What nobody needs must outweigh what is needed: over its life the log is written
    twice at most, whatever is in it.
    """
    used = meta.applied - first
    return used - meta.live > meta.live + _WORTH_IT


class Upkeep:
    """A thread that looks after the store while a worker runs."""

    def __init__(self, store: Store, terms_of: TermsOf, *, timeout: float) -> None:
        self._store = store
        self._terms_of = terms_of
        self._timeout = timeout
        self._over = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="nobroker-upkeep", daemon=True
        )

    def start(self) -> None:
        """Look at once, and every second from then on."""
        self._thread.start()

    def stop(self) -> None:
        """Leave off; a slice that is being written is finished."""
        self._over.set()
        self._thread.join()

    def look(self) -> None:
        """Do what is to be done now, if anything."""
        store = self._store
        names = store.look(lambda tables: list(tables.names.queues))
        terms = {name: self._terms_of(name) for name in names}
        kept = Retention(
            queues={name: one for name, one in terms.items() if one is not None},
            least=_LEAST,
        )
        retention.expire(store, kept, timeout=self._timeout, stopped=self._over.is_set)

        def due(tables: Tables) -> bool:
            return is_due(tables.meta, store.log.first)

        if not self._over.is_set() and store.look(due):
            done = compaction.compact(
                store, kept, timeout=self._timeout, stopped=self._over.is_set
            )
            logger.info("The log was %s.", done.describe())

    def _run(self) -> None:
        while True:
            pause = _PAUSE
            try:
                self.look()
            except CompactionError as error:
                # A backup, or another worker's compaction: it is for next time.
                logger.debug("The log was not compacted: %s", error)
            except (NobrokerError, StorageError, lmdb.Error) as error:
                # Whatever is wrong with the store, those who run jobs tell it.
                logger.warning("The store could not be tidied: %s", error)
                pause = _LONG_PAUSE
            except Exception:
                logger.exception("The upkeep of the store failed.")
                pause = _LONG_PAUSE
            if self._over.wait(pause):
                return
