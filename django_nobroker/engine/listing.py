"""Walking over jobs in the order of their enqueues, forwards or backwards."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from . import keys, states
from .states import Row
from .tables import Tables


def walk(
    tables: Tables,
    *,
    state: int | None = None,
    queue: int | None = None,
    after: int | None = None,
    newest_first: bool = False,
) -> Iterator[tuple[int, Row]]:
    """Yield positions and rows of jobs, of one state and queue or of all.

    ``after`` is the position of the last job seen: the walk goes on behind it.
    Dead jobs are found by their own order, whatever else is in the store; jobs of
    another state are sought among all. Discarded and forgotten ones show only when
    asked for.
    """
    for position in _positions(tables, state, queue, after, newest_first=newest_first):
        row = tables.row(position)
        if row is None or queue not in (None, row.queue):
            continue
        if row.state == state or (state is None and row.state < states.DISCARDED):
            yield position, row


def _positions(
    tables: Tables,
    state: int | None,
    queue: int | None,
    after: int | None,
    *,
    newest_first: bool,
) -> Iterator[int]:
    if state != states.DEAD:
        yield from _order(tables, keys.JOB, b"", after, newest_first=newest_first)
        return
    numbers = range(len(tables.names.queues)) if queue is None else [queue]
    orders = [
        _order(
            tables,
            keys.queue_prefix(keys.DEAD, number),
            bytes(8),
            after,
            newest_first=newest_first,
        )
        for number in numbers
        if tables.counts(number)[keys.DEAD_SLOT]
    ]
    yield from heapq.merge(*orders, reverse=newest_first)


def _order(
    tables: Tables,
    prefix: bytes,
    middle: bytes,
    after: int | None,
    *,
    newest_first: bool,
) -> Iterator[int]:
    start = b""
    if after is not None:
        # Backwards the start is left out, forwards it would be included.
        first = after if newest_first else after + 1
        start = prefix + middle + first.to_bytes(8, "big")
    for entry in tables.entries(prefix, reverse=newest_first, start=start):
        yield keys.position_of(entry)
