"""The index as one LMDB transaction shows it: rows, orders, counters (reading)."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct as Packed

import lmdb
import msgspec
from msgspec import Struct

from . import keys, states
from .states import Row

decode_row = msgspec.msgpack.Decoder(Row).decode
#: What ever happened in a queue, in this order, counted for good.
TOTALS = 6
ENQUEUED, COMPLETED, FAILED, BURIED, REQUEUED, DISCARDED = range(TOTALS)
COUNTS = Packed(f"<{keys.SLOTS + TOTALS}Q")
_NOTHING = (0,) * (keys.SLOTS + TOTALS)
_GENERATED = 32


class Meta(Struct, array_like=True, kw_only=True):
    """How far the log is applied, and what was met on the way."""

    applied: int = 0  # position after the last applied record
    last: int = -1  # position of that record
    sum: str = ""  # and its checksum, to compare with the log
    epoch: int = 0
    boot: str = ""
    generation: int = 0
    orphans: int = 0  # records of jobs that are not known
    unknown: dict[str, int] = {}  # operations of newer versions, skipped
    damage: list[tuple[int, int]] = []
    repair: tuple[float, int, int] | None = None  # when, bytes cut, holes
    first: int = 0  # where the log began when this index did
    low: int = 0  # nothing before this is needed, says the newest drop
    live: int = 0  # how much of it is needed now: the weights of all jobs


class Names(Struct, array_like=True, kw_only=True):
    """Queues and kinds, numbered in the order in which they appeared."""

    queues: list[str] = []
    kinds: list[str] = msgspec.field(default_factory=lambda: [""])


class Tables:
    """Reading; valid as long as its transaction."""

    def __init__(self, txn: lmdb.Transaction) -> None:
        self.txn = txn
        raw = txn.get(keys.META)
        self.meta = msgspec.msgpack.decode(raw, type=Meta) if raw else Meta()
        self._stored_meta = raw
        raw = txn.get(keys.NAMES)
        self.names = msgspec.msgpack.decode(raw, type=Names) if raw else Names()

    def queue_number(self, name: str) -> int | None:
        """Return the number of a queue, None if no job of it was ever seen."""
        try:
            return self.names.queues.index(name)
        except ValueError:
            return None

    def row(self, position: int) -> Row | None:
        """Return the job of that number."""
        raw = self.txn.get(keys.job(position))
        return decode_row(raw) if raw is not None else None

    def find(self, job_id: str, queue: int | None = None) -> tuple[int, Row] | None:
        """Return number and row of an id, in one queue or anywhere in the store."""
        scopes = [keys.STORE_WIDE]
        scopes += range(len(self.names.queues)) if queue is None else [queue]
        for scope in scopes:
            found = self.given(scope, job_id)
            if found is not None and _shows(found[1], queue):
                return found
        if len(job_id) == _GENERATED:
            try:
                position = int(job_id[:12], 16)
            except ValueError:
                return None
            # A sign is a number's, too, but no position's.
            row = self.row(position) if position >= 0 else None
            if row is not None and row.id == job_id and _shows(row, queue):
                return position, row
        return None

    def given(self, scope: int, job_id: str) -> tuple[int, Row] | None:
        """Return the job that was enqueued under a given id."""
        raw = self.txn.get(keys.given_id(scope, job_id))
        if raw is None:
            return None
        position = int.from_bytes(raw, "big")
        row = self.row(position)
        return None if row is None else (position, row)

    def scope_of(self, position: int, row: Row) -> str:
        """Return where a job's id was given to be unique: "queue", "store" or ""."""
        value = position.to_bytes(8, "big")
        for scope, name in ((row.queue, "queue"), (keys.STORE_WIDE, "store")):
            if self.txn.get(keys.given_id(scope, row.id)) == value:
                return name
        return ""

    def known(self, queue: str, given: str, job_id: str) -> tuple[int, Row] | None:
        """Return the job that a given id stands for already, in its scope."""
        if given == "store":
            return self.given(keys.STORE_WIDE, job_id)
        number = self.queue_number(queue)
        return None if number is None else self.given(number, job_id)

    def counts(self, queue: int) -> tuple[int, ...]:
        """Return how many jobs of a queue count in each slot."""
        return self.numbers(queue)[: keys.SLOTS]

    def totals(self, queue: int) -> tuple[int, ...]:
        """Return what ever happened in a queue, in the order of the names above."""
        return self.numbers(queue)[keys.SLOTS :]

    def numbers(self, queue: int) -> tuple[int, ...]:
        """Return the counters of a queue: its slots, then its totals."""
        raw = self.txn.get(keys.counts(queue))
        return COUNTS.unpack(raw) if raw is not None else _NOTHING

    def live_jobs(self) -> int:
        """Return how many jobs are to be finished still."""
        numbers = range(len(self.names.queues))
        return sum(
            sum(self.counts(number)[: keys.LEASED_SLOT + 1]) for number in numbers
        )

    def entries(
        self, prefix: bytes, *, reverse: bool = False, start: bytes = b""
    ) -> Iterator[bytes]:
        """Walk the keys that begin with ``prefix``; from ``start`` on, if given.

        Forwards, ``start`` itself is included; backwards, it is not.
        """
        with self.txn.cursor() as cursor:
            if reverse:
                # 0xff sorts after every key of the prefix.
                there = cursor.set_range(start or prefix + b"\xff" * 24)
                there = cursor.prev() if there else cursor.last()
            else:
                there = cursor.set_range(start or prefix)
            while there:
                key = bytes(cursor.key())
                if not key.startswith(prefix):
                    return
                yield key
                there = cursor.prev() if reverse else cursor.next()

    def expired(self, boot: float) -> dict[int, int]:
        """Count the leases that have run out but were not taken back yet, by queue."""
        found: dict[int, int] = {}
        for entry in self.entries(keys.LEASED):
            born, until = keys.timed_parts(entry)
            if born == self.meta.generation and until > boot:
                break
            row = self.row(keys.position_of(entry))
            if row is not None:
                found[row.queue] = found.get(row.queue, 0) + 1
        return found

    def ready_priorities(self, queue: int) -> Iterator[tuple[int, float]]:
        """Return each priority that has a ready job, with its earliest availability."""
        prefix = keys.queue_prefix(keys.READY, queue)
        with self.txn.cursor() as cursor:
            there = cursor.set_range(prefix)
            while there and bytes(cursor.key()).startswith(prefix):
                priority, available_at = keys.ready_parts(bytes(cursor.key()))
                yield priority, available_at
                there = cursor.set_range(
                    keys.ready_prefix(queue, priority) + b"\xff" * 20
                )


def _shows(row: Row, queue: int | None) -> bool:
    """Tell whether a job is of that queue, and not forgotten."""
    return queue in (None, row.queue) and row.state != states.FORGOTTEN
