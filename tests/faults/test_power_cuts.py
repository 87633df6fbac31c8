"""Whenever the power fails, what was acknowledged is there."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable

import pytest

from tests.faults.checker import Quick
from tests.faults.cuts import Recorded, cut_everywhere, look_at
from tests.faults.recorder import Recorder
from tests.faults.world import CASES, OPERATIONS, World, possible

#: Lives of a store, and how many operations each of them has; a campaign asks for more.
SEEDS = range(int(os.environ.get("NOBROKER_POWER_SEEDS", "4")))
LENGTH = 14


def test_the_first_seconds_of_a_store(stores):
    recorded = Recorded(stores, [World.open, World.enqueue, World.batch, World.with_id])

    states = cut_everywhere(stores, recorded)

    print(f"first seconds: crash states recovered {states}/{states}")
    assert states > 40


@pytest.mark.parametrize("name", CASES)
def test_an_operation(stores, name):
    before, operation = CASES[name]
    recorded = Recorded(stores, [*before, operation, World.enqueue])

    states = cut_everywhere(stores, recorded, first=recorded.began[len(before)])

    print(f"{name}: crash states recovered {states}/{states}")
    assert states > 1


def test_an_append_while_another_process_syncs(stores):
    """What is written during a sync is not made durable by it."""

    class Overlapping(Recorder):
        meanwhile: Callable[[], None] = staticmethod(lambda: None)

        def _fsync(self, fd: int) -> None:
            super()._fsync(fd)
            meanwhile, self.meanwhile = self.meanwhile, lambda: None
            meanwhile()

        _fdatasync = _fsync

    def overlap(world: World) -> None:
        other = world.beside(world.vfs, "two")
        other.open()
        other.enqueue_relaxed()
        world.vfs.meanwhile = other.enqueue_relaxed  # type: ignore[attr-defined]
        world.enqueue()
        relaxed = [name for name, steps in world.witness.steps.items() if "two" in name]
        with world.witness.expects(dict.fromkeys(relaxed, "ready")):
            other.store.commit(other.store.end)
        other.close()

    recorded = Recorded(stores, [World.live, overlap], kind=Overlapping)

    states = cut_everywhere(stores, recorded, first=recorded.began[1])

    print(f"append during a sync: crash states recovered {states}/{states}")


def test_an_index_that_outlives_the_end_of_its_log_is_not_believed(stores):
    """A file system that fails in mid-boot loses the log's end, and not the index."""
    with stores.one() as root:
        world = World(root, Quick(), segment_size=1 << 20)
        world.witness.now = lambda: world.store.end if world.is_open else 0
        world.live()
        world.close()
        path = root / "jobs" / "00000000000000000000.log"
        data = path.read_bytes()
        ends = [place + 1 for place, byte in enumerate(data) if byte == 10][2:-1]
        saved = root.parent / "saved"
        shutil.copytree(world.index, saved)
        for end in ends:
            shutil.rmtree(world.index)
            shutil.copytree(saved, world.index)
            path.write_bytes(data[:end])
            (root / "jobs" / "control").unlink()
            expected = world.witness.at(end)

            wrong = look_at(root / "jobs", expected, world.clock, scratch=world.index)

            assert not wrong, f"cut at {end} of {len(data)}: {wrong}"
    print(f"stale indexes thrown away {len(ends)}/{len(ends)}")


@pytest.mark.parametrize("seed", SEEDS)
def test_any_operations_one_after_the_other(stores, seed):
    """From an empty directory on; every seed is another life of a store."""
    chance = random.Random(seed)
    names: list[str] = []

    def any_operation(world: World) -> None:
        names.append(chance.choice(possible(world)))
        OPERATIONS[names[-1]](world)

    recorded = Recorded(stores, [World.open] + [any_operation] * LENGTH)
    try:
        states = cut_everywhere(stores, recorded, seed=seed)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, {names}") from error

    print(f"seed {seed}: crash states recovered {states}/{states}")
