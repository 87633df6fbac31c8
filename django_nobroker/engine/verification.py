"""Is the index what a replay of the log gives? A second one is built, and compared.

They are compared by what they mean: numbers of queues and kinds, and whether the end
of a waiting time was noticed yet, may differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from . import integrity, keys, states
from .changes import Changes
from .integrity import IntegrityReport
from .locks import Maintenance
from .replica import Progress, grow, replica, unwatched
from .scan import Finding
from .states import Row
from .store import Store
from .tables import Tables

REBUILD = "rebuild-index"
_ORDERS = (
    keys.READY,
    keys.WALL,
    keys.BOOT,
    keys.LEASED,
    keys.DEAD,
    keys.DONE,
    keys.DISCARDED,
    keys.FORGOTTEN,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationReport:
    """What a verification found; ``ok`` is whether the log and the index are sound.

    ``log`` is the full check of the log. ``errors`` holds what is wrong with either;
    those of kind ``index`` are mended by ``rebuild_index``, and ``mend`` then says so.
    """

    ok: bool
    log: IntegrityReport
    errors: tuple[Finding, ...]
    more: int
    jobs: int  # jobs that were compared
    position: int  # up to which log and index were compared
    mend: str
    seconds: float

    def to_dict(self) -> dict[str, object]:
        """Return plain values, as JSON has them."""
        plain: dict[str, object] = msgspec.json.decode(msgspec.json.encode(self))
        return plain


def verify(
    store: Store, *, max_errors: int = 100, progress: Progress = unwatched
) -> VerificationReport:
    """Replay the whole log into a second index and compare the two.

    Writers go on meanwhile. Nothing is changed.
    """
    clock = store.clock
    began = clock.monotonic()
    with (
        Maintenance(store.directory, store.vfs, clock).shared(),
        replica(store) as second,
    ):
        end = store.end
        scan = integrity.begin(store, end, integrity.FULL)
        integrity.read_everything(store, second, scan, end, progress)
        log = integrity.report(
            store,
            scan,
            mode=integrity.FULL,
            max_errors=max_errors,
            end=end,
            began=began,
        )
        found: list[Finding] = []

        def compare(tables: Tables) -> tuple[int, int]:
            # The second one is taken to the very place where this one stands.
            found.clear()
            position = tables.meta.applied
            wall, boot = clock.wall(), clock.boot()
            comparison = Comparison(tables, wall=wall, boot=boot)
            found.extend(
                second.read(position, comparison.differences, wall=wall, boot=boot)
            )
            return position, comparison.jobs

        unreadable = any(one.kind == "unreadable" for one in log.errors)
        position, jobs = (end, 0) if unreadable else store.look(compare)
    errors = [*log.errors, *found]
    return VerificationReport(
        ok=log.ok and not found,
        log=log,
        errors=tuple(errors[:max_errors]),
        more=log.more + max(0, len(errors) - max_errors),
        jobs=jobs,
        position=position,
        mend=REBUILD if found else "",
        seconds=clock.monotonic() - began,
    )


def rebuild_index(store: Store, *, progress: Progress = unwatched) -> int:
    """Empty the index and build it anew, for every process here; return its jobs.

    Others go on meanwhile, those that need the index wait until it has caught up.
    """
    with Maintenance(store.directory, store.vfs, store.clock).shared():
        store.index.empty()
        grow(store.index, store.end, Changes, progress=progress)
        return store.look(
            lambda tables: sum(
                sum(tables.counts(number)) for number in range(len(tables.names.queues))
            )
        )


class Comparison:
    """The index that everybody uses, to be compared with another one."""

    def __init__(self, tables: Tables, *, wall: float, boot: float) -> None:
        self._ours = tables
        self._wall = wall
        self._boot = boot
        self.jobs = 0

    def differences(self, second: Tables) -> list[Finding]:
        """Return how they differ: jobs, orders, counters and ids."""
        return [
            *self._rows(second),
            *self._orders(),
            *self._counters(),
            *self._ids(second),
        ]

    def _rows(self, second: Tables) -> Iterator[Finding]:
        ours, theirs = _positions(self._ours), _positions(second)
        mine, replayed = next(ours, None), next(theirs, None)
        while mine is not None or replayed is not None:
            if replayed is None or (mine is not None and mine < replayed):
                assert mine is not None
                yield self._finding(
                    mine, self._ours, "it is in the index but not in the log"
                )
                mine = next(ours, None)
            elif mine is None or replayed < mine:
                yield self._finding(
                    replayed, second, "it is in the log but not in the index"
                )
                replayed = next(theirs, None)
            else:
                self.jobs += 1
                if wrong := self._differing(mine, second):
                    yield self._finding(mine, second, f"the index has another {wrong}")
                mine, replayed = next(ours, None), next(theirs, None)

    def _differing(self, position: int, second: Tables) -> str:
        """Return the names of the fields that differ, "" if none does."""
        ours, theirs = self._ours.row(position), second.row(position)
        assert ours is not None
        assert theirs is not None
        mine, replayed = self._meaning(ours, self._ours), self._meaning(theirs, second)
        return ", ".join(name for name in mine if mine[name] != replayed[name])

    def _meaning(self, row: Row, tables: Tables) -> dict[str, object]:
        names = tables.names
        values: dict[str, object] = msgspec.structs.asdict(row)
        values["queue"] = names.queues[row.queue]
        values["kind"] = names.kinds[row.kind]
        if (
            row.state == states.READY
            and row.timer != states.DUE
            and self._is_over(row, tables)
        ):
            values["timer"] = states.DUE
        return values

    def _is_over(self, row: Row, tables: Tables) -> bool:
        if row.timer == states.WALL:
            return row.available_at <= self._wall
        return row.generation != tables.meta.generation or row.until <= self._boot

    def _orders(self) -> Iterator[Finding]:
        tables = self._ours
        for position in _positions(tables):
            row = tables.row(position)
            assert row is not None
            if tables.txn.get(keys.order(row, position)) is None:
                yield self._finding(
                    position, tables, "it is missing in the order of its state"
                )
        for prefix in _ORDERS:
            for entry in tables.entries(prefix):
                position = keys.position_of(entry)
                row = tables.row(position)
                if row is None or keys.order(row, position) != entry:
                    yield self._finding(
                        position, tables, "it is in an order where it does not belong"
                    )

    def _counters(self) -> Iterator[Finding]:
        tables = self._ours
        recount: dict[int, list[int]] = {}
        for position in _positions(tables):
            row = tables.row(position)
            assert row is not None
            recount.setdefault(row.queue, [0] * keys.SLOTS)[keys.slot(row)] += 1
        for number, name in enumerate(tables.names.queues):
            counted = tuple(recount.get(number, [0] * keys.SLOTS))
            if tables.counts(number) != counted:
                text = (
                    f"the counters of the queue {name} say {tables.counts(number)}, "
                    f"its jobs are {counted}"
                )
                yield Finding(kind="index", start=0, end=tables.meta.applied, text=text)

    def _ids(self, second: Tables) -> Iterator[Finding]:
        count = 0
        for entry in self._ours.entries(keys.ID):
            count += 1
            if self._ours.txn.get(entry) != self._id_in(second, entry):
                job = entry[keys.QUEUE_END :].decode(errors="replace")
                text = "this id leads to another job than in the log"
                yield Finding(
                    kind="index", start=0, end=second.meta.applied, text=text, job=job
                )
        replayed = sum(1 for _ in second.entries(keys.ID))
        if replayed != count:
            text = f"the index remembers {count} given ids, the log {replayed}"
            yield Finding(kind="index", start=0, end=second.meta.applied, text=text)

    def _id_in(self, second: Tables, entry: bytes) -> bytes | None:
        """Return what an id stands for in an index that numbers queues in its own way."""
        scope = int.from_bytes(entry[1 : keys.QUEUE_END], "big")
        if scope != keys.STORE_WIDE:
            number = second.queue_number(self._ours.names.queues[scope])
            if number is None:
                return None
            entry = keys.queue_prefix(keys.ID, number) + entry[keys.QUEUE_END :]
        found = second.txn.get(entry)
        return None if found is None else bytes(found)

    def _finding(self, position: int, tables: Tables, text: str) -> Finding:
        row = tables.row(position)
        size = 0 if row is None else row.size
        job = None if row is None else row.id
        return Finding(
            kind="index", start=position, end=position + size, text=text, job=job
        )


def _positions(tables: Tables) -> Iterator[int]:
    return map(keys.position_of, tables.entries(keys.JOB))
