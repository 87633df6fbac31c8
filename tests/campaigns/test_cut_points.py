"""A log that is cut anywhere is recovered with everything that was whole before."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from django_nobroker.engine import deadletters, settle
from django_nobroker.engine.errors import CorruptLogError
from django_nobroker.engine.record import Failure
from django_nobroker.engine.store import Store
from tests.engine.driving import (
    TIMEOUT,
    ack,
    add,
    add_many,
    held,
    log_of,
    nack,
    payloads,
    release,
    take,
    take_one,
    whole_lines,
)
from tests.faults.files import FaultyFiles
from tests.faults.hands import SettableClock


class Unsynced(FaultyFiles):
    """Nothing here depends on the disk, only on what is in the files."""

    def __init__(self) -> None:
        super().__init__()
        self.fsync = self.fdatasync = lambda fd: None  # type: ignore[assignment]


class Step(NamedTuple):
    """Where the log ended after an operation, and what the jobs were then."""

    end: int
    jobs: dict[str, list[Any]]


def operations(store: Store) -> Iterator[object]:
    """Let one operation after another happen, of every kind and without end."""
    for number in count(1):
        yield add(store, number, priority=number % 3)
        yield add_many(store, [f"{number}-{n}" for n in range(2 + number % 3)])
        first, second, third = take(store, 3)
        yield None
        yield ack(store, first, {"result": number})
        if number % 2:
            yield nack(store, second, delay=5.0 * (number % 4))
        else:
            yield release(store, second)
        yield settle.extend(store, held(third), 60.0, timeout=TIMEOUT)
        yield settle.bury(
            store,
            held(third),
            error=Failure(message="no"),
            reason=settle.REJECTED,
            durable=True,
            timeout=TIMEOUT,
        )
        yield deadletters.requeue(
            store, [third.position], by="ada", durable=True, timeout=TIMEOUT
        )


def write_history(store: Store, length: int) -> list[Step]:
    """Let operations happen until there are ``length`` records."""
    steps = [Step(store.end, payloads(store))]
    for _ in operations(store):
        steps.append(Step(store.end, payloads(store)))
        if len(whole_lines(log_of(store.directory))) >= length:
            break
    return steps


def recover_at(
    root: Path, cut: int, data: bytes, steps: list[Step], first: int
) -> tuple[bool, bool]:
    """Open a copy that ends at ``cut``; tell whether it recovered, and kept what was whole."""
    directory = root / f"cut-{cut}"
    directory.mkdir()
    path = directory / "00000000000000000000.log"
    path.write_bytes(data[:cut])
    index = root / f"index-{cut}"
    index.mkdir()
    clock, files = SettableClock(), Unsynced()
    options: dict[str, Any] = {"index_root": str(index), "clock": clock, "vfs": files}
    whole = [step for step in steps if step.end <= cut]
    expected = whole[-1].jobs if whole else {}
    kept_to = whole[-1].end if whole else (first if cut >= first else 0)

    store = Store(str(directory), **options)
    try:
        found = payloads(store)
        kept = found == expected
        if kept_to:
            kept = kept and path.read_bytes().startswith(data[:kept_to])
        aside = list(directory.glob("set-aside/*"))
        torn = data[kept_to:cut]
        if kept_to and torn:
            kept = kept and [one.read_bytes() for one in aside] == [torn]
        add(store, "one more", priority=1000)
    finally:
        store.close()
    again = Store(str(directory), **options)
    try:
        recovered = not again.recovery.repaired
        recovered = recovered and take_one(again).row.priority == 1000
    finally:
        again.close()
    clock.restart()
    third = Store(str(directory), **options)
    try:
        recovered = recovered and not third.recovery.repaired
        recovered = recovered and third.recovery.damage == third.recovery.holes == ()
    finally:
        third.close()
    return recovered, kept


def campaign(tmp_path: Path, length: int, stride: int) -> str:
    source = tmp_path / "source"
    index = tmp_path / "index"
    index.mkdir()
    store = Store(
        str(source), index_root=str(index), clock=SettableClock(), vfs=Unsynced()
    )
    steps = write_history(store, length)
    store.close()
    data = log_of(source)
    lines = whole_lines(data)
    assert len(lines) >= length
    edges, at = set(), 0
    for line in lines:
        at += len(line)
        edges |= {at - 1, at, at + 1, at + 17, at + 18}
    cuts = [
        cut
        for cut in range(len(data) + 1)
        if cut % stride == 0 or (cut in edges and cut <= len(data))
    ]
    recovered = kept = 0
    for cut in cuts:
        try:
            good, same = recover_at(tmp_path, cut, data, steps, len(lines[0]))
        except CorruptLogError as error:
            raise AssertionError(f"refused at {cut}") from error
        assert good, f"not recovered at {cut}"
        assert same, f"the acknowledged prefix is not kept at {cut}"
        recovered += good
        kept += same
    return (
        f"cut points recovered {recovered}/{len(cuts)}, "
        f"acknowledged prefix kept {kept}/{len(cuts)}"
    )


def test_a_log_cut_at_some_places_is_recovered(tmp_path):
    print(campaign(tmp_path, length=30, stride=41))


@pytest.mark.campaign
def test_a_log_of_a_hundred_records_cut_at_every_byte_is_recovered(tmp_path):
    print(campaign(tmp_path, length=100, stride=1))
