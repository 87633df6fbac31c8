"""Bugs that can be switched on, to see which test notices.

``python -m tests.faults.planted`` plants each of them in turn, runs the tests of faults
until one fails, and prints by which it was caught. A bug that no test notices is a hole in
the tests. ``NOBROKER_PLANTED`` names the one that ``conftest`` plants.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import lmdb
import pytest

from django_nobroker.engine import (
    compaction,
    framing,
    logend,
    recovery,
    segment,
    setaside,
    settle,
    states,
    survey,
)
from django_nobroker.engine.changes import Changes
from django_nobroker.engine.commit import Committer
from django_nobroker.engine.control import DURABLE, END, FAILED, SEGMENT
from django_nobroker.engine.index import Index
from django_nobroker.engine.leadership import Leadership
from django_nobroker.engine.log import Log
from django_nobroker.engine.replay import Whole
from django_nobroker.engine.store import Store
from django_nobroker.engine.tables import Tables
from django_nobroker.engine.vfs import FLAGS, Vfs
from tests.faults.hands import SettableClock

ROOT = Path(__file__).resolve().parent.parent.parent
VARIABLE = "NOBROKER_PLANTED"
Patch = pytest.MonkeyPatch


class Bug(NamedTuple):
    """A wrong variant of the engine: how to plant it, and the test that notices."""

    plant: Callable[[Patch], None]
    caught_by: str


BUGS: dict[str, Bug] = {}


def bug(name: str, caught_by: str) -> Callable[[Callable[[Patch], None]], Any]:
    def register(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
        BUGS[name] = Bug(plant, caught_by)
        return plant

    return register


POWER = "test_power_cuts.py::test_an_operation"
KILLS = "test_kill_points.py::test_an_operation"
REFUSED = "test_refused_calls.py::test_an_operation"


@bug("no sync", f"{POWER}[enqueue]")
def no_sync(patch: Patch) -> None:
    def commit(self: Committer, position: int) -> None:
        words = self._control.words
        words[DURABLE] = words[END]

    patch.setattr(Committer, "commit", commit)


@bug("acknowledge before the sync", f"{POWER}[enqueue]")
def acknowledge_before_sync(patch: Patch) -> None:
    patch.setattr(Leadership, "append_durably", Leadership.append)


@bug(
    "the end is read after the sync",
    "test_power_cuts.py::test_an_append_while_another_process_syncs",
)
def end_after_sync(patch: Patch) -> None:
    right = Committer.commit

    def commit(self: Committer, position: int) -> None:
        right(self, position)
        words = self._control.words
        words[DURABLE] = words[END]

    patch.setattr(Committer, "commit", commit)


@bug("a new segment's name is not synced", f"{POWER}[append to a full segment]")
def no_directory_sync(patch: Patch) -> None:
    def sync(self: Log, start: int, end: int) -> None:
        for base in self.segments_between(max(start, self.first), end):
            fd = segment.open_to_read(self.directory, base, self._vfs)
            try:
                self._vfs.fdatasync(fd)
            finally:
                self._vfs.close(fd)

    patch.setattr(Log, "sync", sync)


@bug("a sync that failed is tried again", f"{REFUSED}[enqueue-EIO]")
def retry_after_error(patch: Patch) -> None:
    right = Committer._descriptor

    class Stubborn:
        def __init__(self, vfs: Vfs) -> None:
            self._vfs = vfs

        def __getattr__(self, name: str) -> Any:
            return getattr(self._vfs, name)

        def fdatasync(self, fd: int) -> None:
            try:
                self._vfs.fdatasync(fd)
            except OSError:
                self._vfs.fdatasync(fd)

    def descriptor(self: Committer, base: int) -> int:
        if not isinstance(self._vfs, Stubborn):
            self._vfs = Stubborn(self._vfs)  # type: ignore[assignment]
        return right(self, base)

    patch.setattr(Committer, "_descriptor", descriptor)


@bug("a failed sync is forgotten", f"{REFUSED}[enqueue-EIO]")
def failure_not_sticky(patch: Patch) -> None:
    right = Committer.commit

    def commit(self: Committer, position: int) -> None:
        try:
            right(self, position)
        except OSError:
            self._control.words[FAILED] = 0
            raise

    patch.setattr(Committer, "commit", commit)


@bug(
    "a log is cut at damage in its middle",
    "test_damage.py::test_a_store_with_a_flipped_bit_keeps_all_else_and_reports_it",
)
def cut_at_damage(patch: Patch) -> None:
    patch.setattr(framing, "_resynchronise", lambda data, offset, base: None)


@bug("d is ignored: all damage was acknowledged", f"{POWER}[batch]")
def ignore_d(patch: Patch) -> None:
    patch.setattr(Log, "was_acknowledged", lambda self, position, end: True)


@bug("a part of a transaction counts", f"{POWER}[batch]")
def halves_count(patch: Patch) -> None:
    def whole(decoded: framing.Decoded, acknowledged: object) -> Whole:
        return Whole(decoded.records, decoded.sizes, decoded.end)

    patch.setattr("django_nobroker.engine.replay.whole_transactions", whole)


@bug(
    "the checksum is not compared",
    "test_damage.py::test_a_flipped_bit_costs_one_record_at_most_and_is_noticed",
)
def no_checksum(patch: Patch) -> None:
    def decode_at(data: bytes, offset: int, base: int) -> Any:
        header = data[offset : offset + framing.HEADER]
        if not header[9:17].isdigit():
            return None
        size = int(header[9:17])
        start = offset + framing.HEADER
        record = framing.decode_body(data[start : start + size])
        return None if record is None else (record, size + framing.FRAME)

    patch.setattr(framing, "decode_at", decode_at)


@bug("a torn first record counts as whole", f"{POWER}[append to a full segment]")
def torn_start(patch: Patch) -> None:
    def read_start(directory: str, position: int, vfs: Vfs) -> Any:
        fd = segment.open_to_read(directory, position, vfs)
        try:
            found = framing.decode_at(vfs.read_all(fd, 0, 4096), 0, position)
        finally:
            vfs.close(fd)
        return None if found is None else found[0]

    patch.setattr(segment, "read_start", read_start)


@bug(
    "what a killed writer left is taken as it is",
    f"{KILLS}[settle the rest of a write]",
)
def surplus_taken(patch: Patch) -> None:
    def settle_surplus(self: Any, descriptor: int, base: int, size_end: int) -> None:
        self._words[END] = size_end

    patch.setattr(logend.LogEnd, "_settle_surplus", settle_surplus)


@bug("a segment's file is made before it is published", f"{KILLS}[roll]")
def file_first(patch: Patch) -> None:
    right = logend.LogEnd._begin_segment

    def roll(self: Any) -> int:
        words = self._words
        path = f"{self._directory}/{segment.file_name(words[END])}"
        self._vfs.close(self._vfs.open(path, os.O_CREAT | os.O_RDWR | FLAGS))
        words[SEGMENT] = words[END]
        return right(self)

    patch.setattr(logend.LogEnd, "_roll", roll)


@bug("an epoch is used again", f"{POWER}[reopen]")
def same_epoch(patch: Patch) -> None:
    def found(*arguments: Any) -> survey.Survey:
        right = survey.survey(*arguments)
        right.epoch -= 1
        return right

    patch.setattr(recovery, "survey", found)


@bug("a token is not compared", f"{POWER}[enqueue]")
def no_fencing(patch: Patch) -> None:
    def checked(row: states.Row | None, _one: settle.Held) -> Any:
        return row

    patch.setattr(settle, "_checked", checked)


@bug("leases run on the wall clock", "test_clocks.py")
def wall_clock(patch: Patch) -> None:
    patch.setattr(SettableClock, "boot", SettableClock.wall)


@bug("the index is marked before it is changed", f"{KILLS}[expire]")
def mark_outside(patch: Patch) -> None:
    right = Index.catch_up

    def catch_up(self: Index, end: int, *, near: int = 0) -> lmdb.Environment:
        env = self._environment()
        with env.begin() as txn:
            before = Tables(txn).meta.applied
        if near or before >= end:
            return right(self, end, near=near)
        with env.begin(write=True) as txn:
            changes = Changes(txn)
            changes.meta.applied = end
            changes.flush()
        changed = self._log.decode(before, end, end - before)
        with env.begin(write=True) as txn:
            changes = Changes(txn)
            changes.apply(changed.records, changed.sizes)
            changes.mark(changed.end, changed.records[-1].at, changed.sum)
            changes.flush()
        return right(self, end, near=near)

    patch.setattr(Index, "catch_up", catch_up)


@bug(
    "a stale index is opened",
    "test_power_cuts.py::test_an_index_that_outlives_the_end_of_its_log_is_not_believed",
)
def stale_index(patch: Patch) -> None:
    patch.setattr(Index, "_fits", lambda self, env: True)


@bug("segments are removed before the drop is durable", f"{POWER}[compact]")
def drop_not_durable(patch: Patch) -> None:
    right = Store.run

    def run(self: Store, decide: Any, *, durable: bool, **options: Any) -> Any:
        durable = durable and "_Head.drop" not in decide.__qualname__
        return right(self, decide, durable=durable, **options)

    patch.setattr(Store, "run", run)


@bug("jobs are not moved before their segment goes", f"{KILLS}[compact]")
def nothing_moved(patch: Patch) -> None:
    patch.setattr(compaction._Head, "move", lambda self: True)


@bug(
    "cut bytes are thrown away",
    "test_damage.py::test_a_log_cut_at_any_byte_keeps_what_was_whole_before",
)
def thrown_away(patch: Patch) -> None:
    patch.setattr(setaside, "keep", lambda *arguments, **named: "gone")


# --- planting and running ------------------------------------------------------------------


def planted(name: str, patch: Patch) -> None:
    """Plant one bug for as long as the patch lasts."""
    BUGS[name].plant(patch)


def first_failure(name: str, tests: str) -> str | None:
    """Run tests with a bug until one fails, and return its name."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-xq", "-p", "no:cacheprovider", tests],
        cwd=ROOT,
        env={**os.environ, VARIABLE: name},
        capture_output=True,
        text=True,
        check=False,
    )
    failed = re.search(
        r"^(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$", done.stdout, re.MULTILINE
    )
    if failed is None and done.returncode not in (0, 1):
        raise AssertionError(done.stdout + done.stderr)
    return None if failed is None else failed[1].removeprefix("tests/faults/")


def main(*chosen: str) -> int:
    """Print which test catches which bug."""
    sound = first_failure("", "tests/faults")
    if sound is not None:
        print(f"without any bug {sound} fails")
        return 1
    caught = 0
    names = chosen or tuple(BUGS)
    for name in names:
        test = first_failure(name, "tests/faults")
        caught += test is not None
        print(f"{name:50} {test or 'NOT CAUGHT'}", flush=True)
    print(f"planted bugs caught {caught}/{len(names)}")
    return 0 if caught == len(names) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
