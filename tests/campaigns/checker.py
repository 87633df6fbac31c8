"""A fresh process that says what a store holds, and whether its log makes sense.

Usage: ``python -m tests.campaigns.checker STORE DIRECTORY``; a new index is built in
the directory. Prints one JSON object.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator

from django_nobroker.engine import keys
from django_nobroker.engine.record import (
    Ack,
    AnyRecord,
    Dead,
    Discard,
    Enqueue,
    Extend,
    JobRecord,
    Lease,
    Nack,
    Release,
    Requeue,
    Unknown,
)
from django_nobroker.engine.replay import whole_transactions
from django_nobroker.engine.store import Store
from django_nobroker.engine.tables import Tables

#: Rounding of the boot clock between two processes, in seconds.
CLOCK = 0.001
#: What a job is after each record but a lease.
AFTER = {
    Ack: "done",
    Nack: "ready",
    Release: "ready",
    Requeue: "ready",
    Dead: "dead",
    Discard: "discarded",
}


def records(store: Store) -> Iterator[AnyRecord | Unknown]:
    """Yield what the log holds, decoded anew from its bytes."""
    position, size = 0, 1 << 20
    while position < store.end:
        decoded = store.log.decode(position, store.end, size)
        assert not decoded.damage, decoded.damage
        whole = whole_transactions(decoded, lambda _: False)
        if whole.end == position:
            size *= 2
            continue
        yield from whole.records
        position = whole.end


class Story:
    """Follows every job through the log and notes what does not fit."""

    def __init__(self) -> None:
        self.figures: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.jobs: dict[int, Enqueue] = {}
        self.state: dict[int, str] = {}
        self._given: set[tuple[str, str]] = set()
        self._until: dict[int, float] = {}
        self._attempts: Counter[int] = Counter()

    def read(self, record: AnyRecord | Unknown) -> None:
        """Let one record happen."""
        if isinstance(record, Enqueue):
            self._enqueue(record)
        elif isinstance(record, JobRecord):
            self.figures[type(record).__name__.lower()] += 1
            if record.job not in self.jobs:
                self.wrong.append(f"{record.at}: of a job that was never enqueued")
            elif isinstance(record, Lease):
                self._lease(record)
            else:
                self._change(record)

    def _enqueue(self, record: Enqueue) -> None:
        self.jobs[record.at], self.state[record.at] = record, "ready"
        if record.given:
            if (record.queue, record.id) in self._given:
                self.wrong.append(f"{record.id} was enqueued twice")
            self._given.add((record.queue, record.id))

    def _lease(self, record: Lease) -> None:
        job = record.job
        self._attempts[job] += 1
        if self.state[job] != "ready":
            self.wrong.append(f"{record.at}: leased while {self.state[job]}")
            self.figures["double"] += self.state[job] == "leased"
        if not record.attempt == self._attempts[job] <= self.jobs[job].max:
            self.wrong.append(f"{record.at}: attempt {record.attempt}")
        self.state[job], self._until[job] = "leased", record.until

    def _change(self, record: JobRecord) -> None:
        job = record.job
        before = "dead" if isinstance(record, Requeue) else "leased"
        if self.state[job] != before:
            self.wrong.append(
                f"{record.at}: {type(record).__name__} while {self.state[job]}"
            )
        if isinstance(record, Extend):
            self._until[job] = record.until
            return
        if isinstance(record, Nack) and record.lost:
            self.figures["lost"] += 1
            # A lease that is taken back early may be held twice.
            if record.until - record.delay < self._until[job] - CLOCK:
                self.wrong.append(f"{record.at}: taken back before the lease ran out")
                self.figures["double"] += 1
        if isinstance(record, Release):
            self._attempts[job] -= 1
        elif isinstance(record, Requeue):
            self._attempts[job] = 0
        self.state[job] = AFTER[type(record)]


def contents(store: Store) -> dict[str, str]:
    """Return every entry of the index; what it says of itself only in part."""

    def look(tables: Tables) -> dict[str, str]:
        found = {
            key.hex(): bytes(value).hex()
            for key, value in tables.txn.cursor()
            if key != keys.META
        }
        meta = tables.meta
        found["meta"] = f"{meta.applied} {meta.epoch} {meta.orphans} {meta.damage}"
        return found

    return store.look(look)


def main(directory: str, scratch: str) -> None:
    """Compare the log, the index in use and a new one."""
    in_use = Store(directory, read_only=True)
    anew = Store(directory, read_only=True, index_root=scratch)
    story = Story()
    for record in records(in_use):
        story.read(record)
    old, new = contents(in_use), contents(anew)
    differences = [
        f"the index differs from a new one at {key}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]
    in_use.close()
    anew.close()
    jobs = [[job.id, story.state[at]] for at, job in story.jobs.items()]
    wrong = story.wrong + differences
    print(json.dumps({"figures": story.figures, "jobs": jobs, "wrong": wrong}))


if __name__ == "__main__":
    main(*sys.argv[1:])
