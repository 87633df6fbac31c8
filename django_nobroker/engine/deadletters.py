"""Dead letters: finding them, bringing them back, throwing them away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from . import capacity, keys, states
from .record import Discard, Requeue
from .states import Row
from .store import Store
from .tables import Tables
from .transaction import Transaction

#: Jobs moved in one transaction when many are, so that the lock is held briefly.
SLICE = 500


def requeue(
    store: Store,
    positions: Iterable[int],
    *,
    by: str,
    durable: bool,
    timeout: float,
    max_pending: int | None = None,
) -> list[int]:
    """Make dead jobs ready again, attempts reset; return those that were dead.

    With ``max_pending`` all of them or none, one queue's: beyond it ``QueueFull``.
    """

    def record(position: int, row: Row, now: float) -> Requeue | None:
        if row.state != states.DEAD:
            return None
        return Requeue(job=position, prev=row.last, t=now, by=by)

    return _move(
        store,
        positions,
        record,
        durable=durable,
        timeout=timeout,
        max_pending=max_pending,
    )


def discard(
    store: Store, positions: Iterable[int], *, by: str, durable: bool, timeout: float
) -> list[int]:
    """Throw dead or ready jobs away; return those that were."""

    def record(position: int, row: Row, now: float) -> Discard | None:
        if row.state not in (states.DEAD, states.READY):
            return None
        return Discard(job=position, prev=row.last, t=now, by=by)

    return _move(store, positions, record, durable=durable, timeout=timeout)


def _move(
    store: Store,
    positions: Iterable[int],
    record: Callable[[int, Row, float], Requeue | Discard | None],
    *,
    durable: bool,
    timeout: float,
    max_pending: int | None = None,
) -> list[int]:
    wanted = list(dict.fromkeys(positions))
    moved: list[int] = []
    size = SLICE if max_pending is None else max(1, len(wanted))
    for start in range(0, len(wanted), size):
        part = wanted[start : start + size]

        def decide(transaction: Transaction, part: Sequence[int] = part) -> list[int]:
            changes = transaction.changes
            now = transaction.clock.wall()
            records: list[Requeue | Discard] = []
            queues = set()
            for position in part:
                row = changes.row(position)
                made = record(position, row, now) if row is not None else None
                if row is not None and made is not None:
                    records.append(made)
                    queues.add(row.queue)
            names = [changes.names.queues[queue] for queue in queues]
            if records and max_pending is not None:
                capacity.check(changes, names[0], len(records), max_pending)
            if records:
                transaction.add(records)
            for name in names:
                transaction.ring(name)
            return [made.job for made in records]

        moved += store.run(decide, durable=durable, timeout=timeout)
    return moved


def dead_positions(store: Store, queue: str | None) -> list[int]:
    """Return the numbers of all dead jobs of a queue, or of the store."""

    def look(tables: Tables) -> list[int]:
        if queue is None:
            entries = tables.entries(keys.DEAD)
        else:
            number = tables.queue_number(queue)
            if number is None:
                return []
            entries = tables.entries(keys.queue_prefix(keys.DEAD, number))
        return [keys.position_of(entry) for entry in entries]

    return store.look(look)
