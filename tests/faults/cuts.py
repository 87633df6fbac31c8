"""Cutting the power at every moment of an operation, and looking at what is left."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from django_nobroker.engine.clock import Clock
from tests.faults import power
from tests.faults.checker import check
from tests.faults.hands import SettableClock
from tests.faults.places import Places
from tests.faults.recorder import Change, Recorder
from tests.faults.witness import Expected
from tests.faults.world import World


class Recorded:
    """Operations that a recorder has followed, from an empty directory on."""

    def __init__(
        self,
        places: Places,
        operations: Sequence[Callable[[World], None]],
        *,
        kind: type[Recorder] = Recorder,
    ) -> None:
        with places.one() as root:
            recorder = kind(str(root))
            self.trace: list[Change] = recorder.trace
            world = World(root, recorder)
            self.witness = world.witness
            self.witness.now = lambda: len(self.trace)
            #: The moments at which each operation began.
            self.began: list[int] = []
            for operation in operations:
                self.began.append(len(self.trace))
                operation(world)
            self.ended = len(self.trace)
            world.close()
            self.copy = world.copy

    def expected(self, moment: int) -> Expected:
        return self.witness.at(moment)


def cut_everywhere(
    places: Places, recorded: Recorded, *, first: int = 0, seed: int = 0
) -> int:
    """Check every state after a power cut from a moment on; return how many differ.

    Raises ``AssertionError`` with what is wrong, where, and the seed of the choice.
    """
    chance = random.Random(seed)
    crash = power.Crash()
    seen: set[bytes] = set()
    for moment in range(recorded.ended + 1):
        if moment >= first:
            for tree in crash.states(chance):
                _look(places, recorded, moment, tree, seen, seed)
        if moment < recorded.ended:
            crash.go_on(recorded.trace[moment])
    return len(seen)


def _look(
    places: Places,
    recorded: Recorded,
    moment: int,
    tree: dict[str, bytes | None],
    seen: set[bytes],
    seed: int,
) -> None:
    expected = recorded.expected(moment)
    copy = recorded.copy
    key = hashlib.sha256(
        repr(
            (sorted(tree.items()), expected, bool(copy and copy.sure == moment))
        ).encode()
    ).digest()
    if key in seen:
        return
    seen.add(key)
    with places.one() as root:
        power.write(tree, root)
        clock = SettableClock()
        clock.restart()
        wrong = []
        if "jobs" in tree or any(_must_be(states) for states in expected.jobs.values()):
            wrong += look_at(root / "jobs", expected, clock)
        if copy is not None and copy.sure is not None and copy.sure <= moment:
            if "copy" not in tree:
                wrong.append("the backup is not there")
            else:
                there = recorded.expected(copy.begun)
                wrong += [
                    f"copy: {one}" for one in look_at(root / "copy", there, clock)
                ]
        elif "copy" in tree and copy is not None:
            # A name that nobody was promised: whole all the same.
            there = recorded.expected(copy.begun)
            wrong += [f"copy: {one}" for one in look_at(root / "copy", there, clock)]
        before = recorded.trace[max(0, moment - 3) : moment]
        files = {
            path: None if data is None else len(data) for path, data in tree.items()
        }
        assert not wrong, (
            f"power cut after change {moment} of {recorded.ended}, seed {seed}: "
            f"{wrong}; the last changes were {before}; there was {files}"
        )


def look_at(
    directory: Path, expected: Expected, clock: Clock, *, scratch: Path | None = None
) -> list[str]:
    """Check a store, with an index of its own unless there is one already."""
    if scratch is None:
        scratch = directory.parent.parent / f"scratch-{directory.name}"
    scratch.mkdir(exist_ok=True)
    return check(str(directory), expected, scratch=str(scratch), clock=clock)


def _must_be(states: list[str]) -> bool:
    return "absent" not in states
