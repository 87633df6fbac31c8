"""What is wrong with a store: one sentence each, and the act that mends it."""

from __future__ import annotations

from .engine.store import Store
from .engine.tables import Tables
from .seam import Problem

_FAILED = Problem(
    text="A sync of the log failed, so nothing is acknowledged any more.",
    hint="Check the disk, then remount it or restart the machine.",
)
_TORN_HINT = "The next process that writes cuts them off and keeps a copy in set-aside."
_DAMAGE_HINT = "Check the disk; what can be read around them stays in use."


def problems_of(store: Store, tables: Tables) -> list[Problem]:
    """Return what is wrong right now; empty when all is well."""
    found = []
    if store.failed:
        found.append(_FAILED)
    if store.torn:
        text = f"{store.torn} bytes at the end of the log are unfinished."
        found.append(Problem(text=text, hint=_TORN_HINT))
    if tables.meta.damage:
        text = f"{len(tables.meta.damage)} range(s) of the log are unreadable."
        found.append(Problem(text=text, hint=_DAMAGE_HINT))
    return found
