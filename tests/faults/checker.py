"""One checker for every fault: is the store what its callers were told?

Usage: ``python -m tests.faults.checker DIRECTORY WITNESS``, where the witness is a file
with the JSON of an ``Expected``; a fresh process then prints what is wrong, and its
answer is 0 only if nothing is. The store is opened, repaired and used by that.

It looks at these invariants: what was acknowledged is there and in a state that it may
be in (I1, I2, I7), nothing is invented (I6), what came together stays together, leases
follow each other and attempts are counted (I3, I5), a stale token is refused (I4), the
index and its counters are what the log tells (I8), positions and epochs grow (I9),
nothing stands below the low-water mark (I10); a second recovery has nothing to do, and
the store goes on working.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from django_nobroker.engine import framing, keys, segment, settle, verification
from django_nobroker.engine.clock import Clock
from django_nobroker.engine.control import LOW
from django_nobroker.engine.errors import NobrokerError, NotLeasedError
from django_nobroker.engine.lease import Token
from django_nobroker.engine.record import Enqueue, Moved
from django_nobroker.engine.states import Row
from django_nobroker.engine.store import Store
from django_nobroker.engine.tables import Tables
from django_nobroker.engine.vfs import Vfs
from tests.engine.driving import TIMEOUT, ack, add, held, take
from tests.faults import story
from tests.faults.witness import ABSENT, Expected

#: Before all others, so that the job of the check is the next one.
FIRST = 32_000


class Quick(Vfs):
    """The real file system without syncs: no power fails after the check."""

    fsync = fdatasync = staticmethod(lambda fd: None)


def name_of(store: Store, row: Row) -> str:
    """Return the name that a caller gave to a job: its given id, or its payload."""
    if not row.id[:1].isdigit() and row.id[:1] not in "abcdef":
        return row.id
    found = store.log.record_at(row.data, row.size)
    record = None if found is None else found[0]
    if isinstance(record, Moved) and record.records:
        record = framing.decode_body(bytes(record.records[0]))
    if isinstance(record, Enqueue):
        return str(msgspec.json.decode(bytes(record.payload)))
    return f"unreadable-{int(row.id[:12], 16)}"


def found_in(store: Store) -> dict[str, str]:
    """Return the state of every job, by the name that its caller gave to it."""
    return {name_of(store, row): story.NAMES[row.state] for _, row in _rows(store)}


def _rows(store: Store) -> list[tuple[int, Row]]:
    def look(tables: Tables) -> list[tuple[int, Row]]:
        positions = [keys.position_of(bytes(key)) for key in tables.entries(keys.JOB)]
        return [(one, tables.row(one)) for one in positions]  # type: ignore[misc]

    return store.look(look)


def check(
    directory: str,
    expected: Expected,
    *,
    scratch: str,
    clock: Clock | None = None,
    vfs: Vfs | None = None,
    damaged: bool = False,
) -> list[str]:
    """Return what is wrong with a store, in words; nothing if all is well.

    A new index is built in ``scratch``. With ``damaged`` acknowledged records may be
    damaged, and jobs may lack those.
    """
    clock, vfs = clock or Clock(), vfs or Quick()
    options: dict[str, Any] = {"clock": clock, "vfs": vfs, "index_root": scratch}
    try:
        store = Store(directory, **options)
    except (NobrokerError, OSError) as error:
        return [f"not opened: {error!r}"]
    try:
        wrong = list(_contents(store, expected))
        if not damaged:
            wrong += _acknowledged_damage(store)
            wrong += _told_by_the_log(store)
        wrong += _goes_on(store)
        report = verification.verify(store)
        wrong += [
            one.text for one in report.errors if not damaged or one.kind == "index"
        ]
        wrong += _below_low(store)
        before = found_in(store)
    except (NobrokerError, OSError) as error:
        return [f"not usable: {error!r}"]
    finally:
        store.close()
    return wrong + list(_opened_again(directory, before, options))


def _contents(store: Store, expected: Expected) -> Iterator[str]:
    found = found_in(store)
    for name, allowed in expected.jobs.items():
        state = found.pop(name, ABSENT)
        if state not in allowed:
            yield f"job {name} is {state}, may be {' or '.join(allowed)}"
    for name, state in found.items():
        yield f"job {name} was never asked for; it is {state}"
    there = found_in(store)
    for names in expected.together:
        if 0 < sum(name in there for name in names) < len(names):
            yield f"of {', '.join(names)} only a part is there"


def _acknowledged_damage(store: Store) -> Iterator[str]:
    for start, end in store.recovery.damage:
        yield f"{start}-{end} is reported as damage of something acknowledged"


def _told_by_the_log(store: Store) -> Iterator[str]:
    told = story.Story(store.log.first)
    for record in story.records(store):
        told.read(record)
    if told.holes:
        return  # what follows a record that nobody was promised need not fit
    yield from told.wrong
    rows = {position: story.NAMES[row.state] for position, row in _rows(store)}
    if rows != told.state:
        yield f"the index says {rows}, the log {told.state}"


def _goes_on(store: Store) -> Iterator[str]:
    job = add(store, "check", priority=FIRST)
    taken = take(store, 1)
    if [one.position for one in taken] != [job.at]:
        yield f"the new job {job.at} was not the next: {taken}"
        return
    row = ack(store, taken[0])
    if story.NAMES[row.state] != "done":
        yield f"the new job is {story.NAMES[row.state]}"
    proof = held(taken[0])
    stale = settle.Held(
        proof.position, Token(proof.token.epoch - 1, proof.token.position)
    )
    try:
        settle.ack(store, stale, result=None, durable=True, timeout=TIMEOUT)
    except NotLeasedError:
        return
    yield "a stale token was accepted"


def _below_low(store: Store) -> Iterator[str]:
    assert store.control is not None
    low = store.control.words[LOW]
    for base in segment.positions(store.directory, store.vfs):
        if base < low:
            yield f"segment {base} stands below the low-water mark {low}"


def _opened_again(
    directory: str, before: dict[str, str], options: dict[str, Any]
) -> Iterator[str]:
    Path(directory, "control").unlink(missing_ok=True)
    try:
        store = Store(directory, **options)
    except (NobrokerError, OSError) as error:
        yield f"not opened again: {error!r}"
        return
    try:
        report = store.recovery
        if report.bytes_cut or report.holes or (report.damage and report.repaired):
            yield f"a second recovery found more: {report.describe()}"
        after = found_in(store)
        if after != before:
            yield f"after a second recovery there is {after}, before it was {before}"
    finally:
        store.close()


def main(directory: str, witness: str) -> int:
    """Check a store against a witness's file."""
    expected = msgspec.json.decode(Path(witness).read_bytes(), type=Expected)
    with tempfile.TemporaryDirectory() as scratch:
        wrong = check(os.path.abspath(directory), expected, scratch=scratch)
    print(json.dumps({"wrong": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
