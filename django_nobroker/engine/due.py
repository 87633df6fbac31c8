"""Jobs whose waiting time is over, and their way into the ready order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from . import keys
from .changes import Changes
from .tables import Tables

#: Jobs made due in one LMDB transaction, so that it stays short.
_SLICE = 2000


def due(tables: Tables, *, wall: float, boot: float) -> Iterator[int]:
    """Yield the jobs whose waiting time is over but that are not in the ready order."""
    generation = tables.meta.generation
    for entry in tables.entries(keys.WALL):
        if keys.timed_parts(entry)[1] > wall:
            break
        yield keys.position_of(entry)
    for entry in tables.entries(keys.BOOT):
        born, moment = keys.timed_parts(entry)
        if born == generation and moment > boot:
            break
        yield keys.position_of(entry)


def make_due(changes: Changes, *, wall: float, boot: float) -> bool:
    """Move a bounded number of due jobs to the ready order; True if there were any."""
    found = list(islice(due(changes, wall=wall, boot=boot), _SLICE))
    for position in found:
        changes.make_due(position)
    return bool(found)
