"""How long ended jobs stay: taking jobs out of the store, or all but their ids."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from . import history, keys, states
from .record import Forget, Purge
from .states import Row
from .store import Store
from .tables import Tables
from .transaction import Transaction

#: Jobs taken out in one transaction, so that the lock is held briefly.
SLICE = 500
#: The orders of ended jobs, in which they stand by the time of their end.
_ORDERS = {
    states.DONE: keys.DONE,
    states.DISCARDED: keys.DISCARDED,
    states.FORGOTTEN: keys.FORGOTTEN,
    states.DEAD: keys.DEAD,
}
_OWED = (states.READY, states.LEASED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which jobs: of a queue or of the store, in some states, by age.

    ``until`` is on the wall clock: the end of an ended job, else its enqueue, was
    before. None: whenever it was.
    """

    queue: str | None
    states: Collection[int]
    until: float | None = None

    def holds(self, row: Row) -> bool:
        """Tell whether a job of the queue is one of them."""
        if row.state not in self.states:
            return False
        if self.until is None:
            return True
        since = row.enqueued_at if row.state in _OWED else row.finished_at
        return since < self.until

    def positions(self, tables: Tables, after: int = -1) -> Iterator[int]:
        """Yield the positions of the jobs behind ``after``, in the log's order."""
        number = None if self.queue is None else tables.queue_number(self.queue)
        if self.queue is not None and number is None:
            return
        start = keys.job(after + 1)
        for entry in tables.entries(keys.JOB, start=start):
            position = keys.position_of(entry)
            row = tables.row(position)
            if row is not None and number in (None, row.queue) and self.holds(row):
                yield position

    def ended(self, tables: Tables) -> Iterator[int]:
        """Yield those that ended before ``until``, the oldest first; only such states."""
        for number, name in enumerate(tables.names.queues):
            if self.queue not in (None, name):
                continue
            for state in self.states:
                yield from self._ended(tables, state, number)

    def _ended(self, tables: Tables, state: int, queue: int) -> Iterator[int]:
        for entry in tables.entries(keys.queue_prefix(_ORDERS[state], queue)):
            if (
                self.until is not None
                and state != states.DEAD
                and keys.timed_parts(entry)[1] >= self.until
            ):
                return
            position = keys.position_of(entry)
            row = tables.row(position)
            if row is not None and self.holds(row):
                yield position


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long ended jobs of some queues stay, in seconds; None: for ever.

    ``results`` holds for jobs that are done or discarded, ``dead`` for dead letters,
    ``ids`` for given ids, which block a second job of that id. ``least`` is how long
    every ended job stays at least.
    """

    queues: Mapping[str, Terms]
    least: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The times of one queue, in seconds; see :class:`Retention`."""

    results: float | None = 0.0
    dead: float | None = None
    ids: float | None = 86400.0


def expire(
    store: Store,
    kept: Retention,
    *,
    timeout: float,
    stopped: Callable[[], bool] = lambda: False,
) -> int:
    """Take out what stayed long enough; return how many jobs that showed went.

    Of a job whose id still blocks another one, the id stays.
    """
    gone = 0
    now = store.clock.wall()
    for queue, terms in kept.queues.items():
        for ttl, chosen in (
            (terms.results, (states.DONE, states.DISCARDED)),
            (terms.dead, (states.DEAD,)),
            (terms.ids, (states.FORGOTTEN,)),
        ):
            if ttl is not None:
                until = now - max(ttl, kept.least)
                selection = Selection(
                    queue=queue,
                    states=chosen,
                    until=until if ttl or kept.least else None,
                )
                gone += _expire(store, selection, terms, timeout, stopped)
    return gone


def _expire(
    store: Store,
    chosen: Selection,
    terms: Terms,
    timeout: float,
    stopped: Callable[[], bool],
) -> int:
    gone = 0
    blocking = None if terms.ids is None else store.clock.wall() - terms.ids

    def look(tables: Tables) -> tuple[list[int], list[int]]:
        going: list[int] = []
        staying: list[int] = []
        for position in itertools.islice(chosen.ended(tables), SLICE):
            row = tables.row(position)
            blocks = (
                row is not None
                and row.state != states.FORGOTTEN
                and (blocking is None or row.finished_at >= blocking)
                and bool(tables.scope_of(position, row))
            )
            (staying if blocks else going).append(position)
        return going, staying

    while not stopped():
        going, staying = store.look(look)
        if not going and not staying:
            break
        gone += purge_slice(store, going, chosen, durable=False, timeout=timeout)
        gone += forget_slice(store, staying, chosen, durable=False, timeout=timeout)
    return gone


def purge(
    store: Store, chosen: Selection, *, by: str, durable: bool, timeout: float
) -> int:
    """Take jobs out of the store, whatever state they are in; return how many.

    Their ids may be used again. Forgotten jobs go, too, but do not count. It goes
    slice by slice, others go on meanwhile.
    """
    after, gone = -1, 0
    while True:
        last = after

        def look(tables: Tables, after: int = last) -> list[int]:
            return list(itertools.islice(chosen.positions(tables, after), SLICE))

        part = store.look(look)
        if not part:
            return gone
        gone += purge_slice(
            store, part, chosen, by=by, durable=durable, timeout=timeout
        )
        after = part[-1]


def purge_slice(
    store: Store,
    positions: Sequence[int],
    chosen: Selection,
    *,
    by: str = "",
    durable: bool,
    timeout: float,
) -> int:
    """Take those out that are still as they were chosen; return how many showed."""

    def decide(transaction: Transaction) -> int:
        changes = transaction.changes
        rows = [(position, changes.row(position)) for position in positions]
        going = [
            (position, row)
            for position, row in rows
            if row is not None and chosen.holds(row)
        ]
        if going:
            transaction.add(
                [
                    Purge(
                        jobs=[position for position, _ in going],
                        t=transaction.clock.wall(),
                        by=by,
                    )
                ]
            )
            transaction.owed -= sum(row.state in _OWED for _, row in going)
        return sum(row.state != states.FORGOTTEN for _, row in going)

    return store.run(decide, durable=durable, timeout=timeout)


def forget_slice(
    store: Store,
    positions: Sequence[int],
    chosen: Selection,
    *,
    durable: bool,
    timeout: float,
) -> int:
    """Keep nothing but the ids of those still as they were chosen; return how many."""

    def look(tables: Tables) -> list[tuple[int, Row]]:
        rows = [(position, tables.row(position)) for position in positions]
        return [(position, row) for position, row in rows if row is not None]

    # Payloads are read before the lock is taken; that of an ended job stays as it is.
    prints = {
        position: history.fingerprint(store, position, row)
        for position, row in store.look(look)
    }

    def decide(transaction: Transaction) -> int:
        changes = transaction.changes
        going = []
        for position in prints:
            row = changes.row(position)
            if row is not None and chosen.holds(row):
                going.append(position)
        if going:
            transaction.add(
                [
                    Forget(
                        jobs=going,
                        prints=[prints[position] for position in going],
                        t=transaction.clock.wall(),
                    )
                ]
            )
        return len(going)

    return store.run(decide, durable=durable, timeout=timeout)
