"""How a store is doing, in figures: one look, nothing changed, nothing repaired."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from . import keys, roster, segment, setaside
from .control import DURABLE
from .store import Store
from .tables import Meta, Tables

#: Raised when a field goes or changes its meaning; new fields do not raise it.
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCounts:
    """How many jobs are in which state; ``total`` leaves discarded ones out.

    A lease that has run out counts as ready: the job is there for the taking.
    """

    ready: int = 0
    delayed: int = 0
    leased: int = 0
    done: int = 0
    dead: int = 0
    discarded: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCounts:
    """One queue of the store and its jobs."""

    queue: str
    counts: StateCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Leases:
    """Leases of the queue; seconds. Expired ones wait to be taken back."""

    active: int
    expired: int
    oldest_expired_for: float | None  # None: none, or of before the machine started


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How many unfinished jobs the queue may hold, and holds."""

    max_pending: int | None
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Durability:
    """What is on disk; positions are byte offsets in the log."""

    fsync: bool  # whether this queue waits for the disk
    failed: bool  # a sync has failed: nothing is acknowledged any more
    durable: int | None  # None: nobody has written in this boot, so nobody knows
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Bytes of the store; ``live_share`` is the part of the log that is needed still."""

    log_bytes: int
    segments: int
    torn_bytes: int  # behind the last whole transaction, cut off by the next writer
    index_bytes: int
    set_aside_bytes: int
    set_aside_files: int
    live_share: float | None  # 0 to 1; None if it is not counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What is amiss in the log: ranges that hold no record, records that were skipped."""

    damage: tuple[tuple[int, int], ...]  # acknowledged once
    orphans: int  # records that fit no job
    unknown_operations: tuple[str, ...]  # of a newer version


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """The last opening that had to mend something."""

    at: float  # seconds since the epoch
    bytes_cut: int
    holes: int  # ranges that were never acknowledged


@dataclass(frozen=True, slots=True, kw_only=True)
class Workforce:
    """Workers that are alive, and their threads."""

    alive: int
    concurrency: int
    serving: int  # those that take jobs of this queue


@dataclass(frozen=True, slots=True)
class Totals:
    """What ever happened in this queue, compacted or not."""

    enqueued: int = 0
    completed: int = 0
    failed: int = 0  # attempts that were to be tried again
    dead: int = 0
    requeued: int = 0
    discarded: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """One look at a queue and its store, all of it from one moment.

    ``observed_at`` is that moment, seconds since the epoch. Ages are seconds, never
    below zero, and None where there is nothing that could be old. No text in it
    names a place on the disk.
    """

    version: int
    observed_at: float
    queue: str
    counts: StateCounts
    totals: Totals
    oldest_waiting_for: float | None  # the job that is due for longest
    leases: Leases
    capacity: Capacity
    store_counts: StateCounts
    queues: tuple[NamedCounts, ...]
    durability: Durability
    lock_timeout: float
    sizes: Sizes
    trouble: Trouble
    last_repair: Repair | None
    workers: Workforce

    def to_dict(self) -> dict[str, object]:
        """Return plain values, as JSON has them."""
        plain: dict[str, object] = msgspec.json.decode(msgspec.json.encode(self))
        return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What only the one who opened the queue knows."""

    fsync: bool
    max_pending: int | None
    lock_timeout: float


def diagnose(store: Store, queue: str, policy: Policy) -> Diagnostics:
    """Look at a queue and its store once; works on one that is open for reading only."""
    boot, wall = store.clock.boot(), store.clock.wall()
    crew = roster.alive(store.directory, store.vfs)
    end = store.end

    def look(tables: Tables) -> Diagnostics:
        meta = tables.meta
        number = tables.queue_number(queue)
        expired = tables.expired(boot)
        by_queue = tuple(
            NamedCounts(queue=name, counts=_counts(tables, one, expired.get(one, 0)))
            for one, name in enumerate(tables.names.queues)
        )
        counts = StateCounts() if number is None else by_queue[number].counts
        late = 0 if number is None else expired.get(number, 0)
        return Diagnostics(
            version=VERSION,
            observed_at=wall,
            queue=queue,
            counts=counts,
            totals=Totals() if number is None else Totals(*tables.totals(number)),
            oldest_waiting_for=None
            if number is None
            else _oldest(tables, number, wall),
            leases=Leases(
                active=counts.leased,
                expired=late,
                oldest_expired_for=(
                    None if number is None else _longest_expired(tables, number, boot)
                ),
            ),
            capacity=Capacity(
                max_pending=policy.max_pending,
                pending=counts.ready + counts.delayed + counts.leased,
            ),
            store_counts=_sum(one.counts for one in by_queue),
            queues=tuple(sorted(by_queue, key=lambda one: one.queue)),
            durability=Durability(
                fsync=policy.fsync,
                failed=store.failed,
                durable=None if store.control is None else store.control.words[DURABLE],
                end=max(end, meta.applied),
            ),
            lock_timeout=policy.lock_timeout,
            sizes=_sizes(store, tables),
            trouble=Trouble(
                damage=tuple((start, stop) for start, stop in meta.damage),
                orphans=meta.orphans,
                unknown_operations=tuple(sorted(meta.unknown)),
            ),
            last_repair=_repair(meta),
            workers=Workforce(
                alive=len(crew),
                concurrency=sum(one.concurrency for one in crew),
                serving=sum(one.serves(queue) for one in crew),
            ),
        )

    return store.look(look)


def _counts(tables: Tables, number: int, expired: int) -> StateCounts:
    ready, delayed, leased, done, dead, discarded, _ = tables.counts(number)
    return StateCounts(
        ready=ready + expired,
        delayed=delayed,
        leased=leased - expired,
        done=done,
        dead=dead,
        discarded=discarded,
        total=ready + delayed + leased + done + dead,
    )


def _sum(counts: Iterable[StateCounts]) -> StateCounts:
    rows = list(counts)
    return StateCounts(
        ready=sum(one.ready for one in rows),
        delayed=sum(one.delayed for one in rows),
        leased=sum(one.leased for one in rows),
        done=sum(one.done for one in rows),
        dead=sum(one.dead for one in rows),
        discarded=sum(one.discarded for one in rows),
        total=sum(one.total for one in rows),
    )


def _oldest(tables: Tables, number: int, wall: float) -> float | None:
    since = min((moment for _, moment in tables.ready_priorities(number)), default=None)
    return None if since is None else max(0.0, wall - since)


def _longest_expired(tables: Tables, number: int, boot: float) -> float | None:
    # The order is by deadline, so the first one of the queue is the oldest.
    for entry in tables.entries(keys.LEASED):
        born, until = keys.timed_parts(entry)
        if born != tables.meta.generation:
            continue
        if until > boot:
            return None
        row = tables.row(keys.position_of(entry))
        if row is not None and row.queue == number:
            return max(0.0, boot - until)
    return None


def _sizes(store: Store, tables: Tables) -> Sizes:
    sizes = segment.sizes(store.directory, store.vfs)
    kept = setaside.listing(store.directory, store.vfs)
    log_bytes = sum(size for _, size in sizes)
    return Sizes(
        log_bytes=log_bytes,
        segments=len(sizes),
        torn_bytes=store.torn,
        index_bytes=store.index.used_bytes,
        set_aside_bytes=sum(one.size for one in kept),
        set_aside_files=len(kept),
        live_share=min(1.0, tables.meta.live / log_bytes) if log_bytes else None,
    )


def _repair(meta: Meta) -> Repair | None:
    if meta.repair is None:
        return None
    at, bytes_cut, holes = meta.repair
    return Repair(at=at, bytes_cut=bytes_cut, holes=holes)
