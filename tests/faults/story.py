"""What became of every job, told by the records alone, and what does not fit.

It is a second, plainer replay: the engine's own is not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from django_nobroker.engine import framing, states
from django_nobroker.engine.record import (
    Ack,
    AnyRecord,
    Dead,
    Discard,
    Drop,
    Enqueue,
    Extend,
    Forget,
    JobRecord,
    Lease,
    Moved,
    Nack,
    Open,
    Purge,
    Release,
    Requeue,
    SegmentStart,
    Unknown,
)
from django_nobroker.engine.replay import whole_transactions
from django_nobroker.engine.store import Store

#: Rounding of the boot clock between two processes, in seconds.
CLOCK = 0.001
NAMES = ("ready", "leased", "done", "dead", "discarded", "forgotten")
#: What a job is after each record but a lease.
AFTER = {
    Ack: "done",
    Nack: "ready",
    Release: "ready",
    Requeue: "ready",
    Dead: "dead",
    Discard: "discarded",
}
#: What a job must be before, if not leased.
BEFORE = {Requeue: ("dead",), Discard: ("dead", "ready")}


def records(store: Store) -> Iterator[AnyRecord | Unknown]:
    """Yield the records that count, decoded anew from the bytes of the log."""
    store.log.refresh()
    position, size = store.log.first, 1 << 20
    end = store.end
    while position < end:
        decoded = store.log.decode(position, end, size)
        whole = whole_transactions(
            decoded, lambda place: store.log.was_acknowledged(place, end)
        )
        if whole.end == position:
            size *= 2
            continue
        yield from whole.records
        position = whole.end


class Story:
    """Follows every job through the log and notes what does not fit."""

    def __init__(self, first: int = 0) -> None:
        self.figures: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.jobs: dict[int, Enqueue] = {}
        self.ids: dict[int, str] = {}
        self.state: dict[int, str] = {}
        self._first = first
        self._given: set[tuple[str, str]] = set()
        self._until: dict[int, float] = {}
        self._leased_in: dict[int, int] = {}
        self._attempts: Counter[int] = Counter()
        self._most: dict[int, int] = {}
        self._before = -1
        self._epoch = self._generation = 0
        self._epochs: set[int] = set()
        self._boot = ""
        #: Whether a recovery met records that were lost before they were acknowledged.
        self.holes = False

    def read(self, record: AnyRecord | Unknown) -> None:
        """Let one record happen."""
        if not self._before < record.at:
            self.wrong.append(f"{record.at}: stands before {self._before}")
        if record.d > record.at:
            self.wrong.append(f"{record.at}: knows {record.d} as durable")
        self._before = record.at
        if isinstance(record, Open | SegmentStart):
            self._begin(record)
        elif isinstance(record, Enqueue):
            self._enqueue(record)
        elif isinstance(record, Moved):
            self._move(record)
        elif isinstance(record, Purge):
            for job in record.jobs:
                self._take_out(job)
        elif isinstance(record, Forget):
            for job in record.jobs:
                self._forget(record, job)
        elif isinstance(record, JobRecord):
            self._job(record)
        elif isinstance(record, Drop) and record.before > record.at:
            self.wrong.append(f"{record.at}: drops itself")

    def _begin(self, record: Open | SegmentStart) -> None:
        if record.epoch < self._epoch:
            self.wrong.append(f"{record.at}: epoch {record.epoch} after {self._epoch}")
        if isinstance(record, Open):
            if record.epoch in self._epochs:
                self.wrong.append(f"{record.at}: epoch {record.epoch} a second time")
            self._epochs.add(record.epoch)
            self.holes = self.holes or bool(record.holes)
        self._epoch = record.epoch
        if isinstance(record, SegmentStart):
            self._generation = record.generation
        elif record.boot != self._boot:
            self._generation = record.epoch
        self._boot = record.boot

    def _enqueue(self, record: Enqueue) -> None:
        job = record.at
        self.jobs[job], self.ids[job] = record, record.id
        self.state[job], self._most[job] = "ready", record.max
        if record.given:
            if (record.queue, record.id) in self._given:
                self.wrong.append(f"{record.id} was enqueued twice")
            self._given.add((record.queue, record.id))

    def _move(self, record: Moved) -> None:
        job = record.job
        self.figures["moved"] += 1
        state = NAMES[record.state]
        if job in self.state:
            if self.state[job] != state:
                self.wrong.append(
                    f"{record.at}: moved as {state}, is {self.state[job]}"
                )
        elif job >= self._first:
            self.wrong.append(f"{record.at}: of a job that was never enqueued")
        self.ids[job], self.state[job] = record.id, state
        self._attempts[job], self._most[job] = record.attempts, record.max
        self._until[job], self._leased_in[job] = record.until, record.generation
        if record.given:
            self._given.add((record.queue, record.id))
        if record.records:
            first = framing.decode_body(bytes(record.records[0]))
            if isinstance(first, Enqueue):
                self.jobs[job] = first

    def _take_out(self, job: int) -> None:
        known = self.jobs.get(job)
        if known is not None and known.given:
            self._given.discard((known.queue, known.id))
        self.state.pop(job, None)

    def _forget(self, record: Forget, job: int) -> None:
        if job not in self.state:
            if job >= self._first:
                self.wrong.append(f"{record.at}: forgets a job that was never there")
            return
        if self.state[job] not in [NAMES[one] for one in states.ENDED]:
            self.wrong.append(f"{record.at}: forgets a job that is {self.state[job]}")
        self.state[job] = "forgotten"

    def _job(self, record: JobRecord) -> None:
        self.figures[type(record).__name__.lower()] += 1
        if record.job not in self.state:
            if record.job >= self._first:
                self.wrong.append(f"{record.at}: of a job that was never enqueued")
        elif isinstance(record, Lease):
            self._lease(record)
        else:
            self._change(record)

    def _lease(self, record: Lease) -> None:
        job = record.job
        self._attempts[job] += 1
        if self.state[job] != "ready":
            self.wrong.append(f"{record.at}: leased while {self.state[job]}")
            self.figures["double"] += self.state[job] == "leased"
        if not record.attempt == self._attempts[job] <= self._most[job]:
            self.wrong.append(f"{record.at}: attempt {record.attempt}")
        self.state[job], self._until[job] = "leased", record.until
        self._leased_in[job] = self._generation

    def _change(self, record: JobRecord) -> None:
        job = record.job
        if self.state[job] not in BEFORE.get(type(record), ("leased",)):
            self.wrong.append(
                f"{record.at}: {type(record).__name__} while {self.state[job]}"
            )
        if isinstance(record, Extend):
            self._until[job] = record.until
            self._leased_in[job] = self._generation
            return
        if isinstance(record, Nack) and record.lost:
            self.figures["lost"] += 1
            # A lease that is taken back early may be held twice, unless the machine
            # was started anew meanwhile.
            early = record.until - record.delay < self._until[job] - CLOCK
            if early and self._leased_in[job] == self._generation:
                self.wrong.append(f"{record.at}: taken back before the lease ran out")
                self.figures["double"] += 1
        if isinstance(record, Release):
            self._attempts[job] -= 1
        elif isinstance(record, Requeue):
            self._attempts[job] = 0
        self.state[job] = AFTER[type(record)]
