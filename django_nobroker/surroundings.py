"""What Django does around a request, done around a job.

A worker has no requests, so nobody else would close stale connections, roll back
what a task left open, or put the language back. A job's thread keeps its database
connections; only what a job did to them is undone.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from django.core.cache import close_caches
from django.db import close_old_connections, connections, reset_queries
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone, translation

logger = logging.getLogger("django_nobroker.worker")


def prepare() -> None:
    """Give the next job of this thread connections that work and no history."""
    with _logged("preparing the connections"):
        close_old_connections()
        # With DEBUG on, Django keeps every query until a request begins.
        reset_queries()


def forget_request() -> None:
    """Go back to the default language and time zone, in the current context."""
    translation.deactivate()
    timezone.deactivate()


def open_transactions() -> frozenset[str]:
    """Return the aliases whose connections are inside an atomic block now."""
    return frozenset(
        connection.alias
        for connection in connections.all(initialized_only=True)
        if connection.in_atomic_block
    )


def roll_back(*, keep: frozenset[str] = frozenset()) -> None:
    """End every transaction that a job left open, but not those of ``keep``."""
    for connection in connections.all(initialized_only=True):
        if connection.alias in keep or connection.connection is None:
            continue
        with _logged(f"rolling back on {connection.alias!r}"):
            if connection.in_atomic_block:
                _replace(connection)
            elif connection.autocommit != connection.settings_dict["AUTOCOMMIT"]:
                connection.rollback()
                connection.set_autocommit(connection.settings_dict["AUTOCOMMIT"])


def tidy() -> None:
    """Close what is old or broken: connections to databases and to caches."""
    with _logged("closing connections"):
        for connection in connections.all(initialized_only=True):
            # Django asks such a connection whether it is usable, and SQLite's always
            # says yes. One more connection costs less than one more job.
            if connection.errors_occurred and not connection.in_atomic_block:
                connection.close()
        close_old_connections()
        close_caches()


def kept_connections() -> list[BaseDatabaseWrapper]:
    """Return the connections of this thread that stay open between its jobs."""
    return [
        connection
        for connection in connections.all(initialized_only=True)
        if connection.connection is not None
    ]


def close_for_good(connection: BaseDatabaseWrapper) -> None:
    """Close a connection of a thread that has ended."""
    with _logged(f"closing {connection.alias!r}"):
        connection.inc_thread_sharing()
        connection.close()
        # Django leaves a database in memory open, since closing it is deleting it;
        # another thread, that of the tests, still has it open.
        if connection.connection is not None:
            connection.connection.close()


def _replace(connection: BaseDatabaseWrapper) -> None:
    # An atomic block that was entered and never left cannot be ended by its name;
    # the database rolls back when the connection is gone.
    with contextlib.suppress(Exception):
        connection.connection.close()
    del connections[connection.alias]


@contextlib.contextmanager
def _logged(what: str) -> Iterator[None]:
    """Log what goes wrong: tidying up must not turn a finished job into a failed one."""
    try:
        yield
    except Exception:
        logger.exception("Error while %s after a job.", what)
