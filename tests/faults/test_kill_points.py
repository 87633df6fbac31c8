"""Killed before or after any call of any operation, a process takes nothing with it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.driving import lose_control_page
from tests.faults.cuts import look_at
from tests.faults.dying import Dying
from tests.faults.files import Killed
from tests.faults.places import Places
from tests.faults.world import CASES, Case, World

#: In a recovery that follows a killed one, every so many calls is a kill.
STRIDE = 5


def kill_everywhere(stores: Places, case: Case) -> int:
    """Kill an operation before and after each of its calls; return how many kills."""
    survived = number = 0
    while True:
        for after in (False, True):
            for control in ("kept", "lost"):
                with (
                    stores.one() as root,
                    killed_at(root, case, number, after) as world,
                ):
                    if world is None:
                        return survived
                    look(world, control, f"{number}, {'after' if after else 'before'}")
                    survived += 1
        number += 1


@contextlib.contextmanager
def killed_at(
    root: Path, case: Case, number: int, after: bool
) -> Iterator[World | None]:
    """Lend what a killed process leaves; None if there is no call of that number."""
    files = Dying()
    world = World(root, files)
    for operation in case.before:
        operation(world)
    files.live_until(number, after=after)
    try:
        case.operation(world)
    except Killed:
        pass
    finally:
        world.close()
    yield world if files.is_dead else None


def look(world: World, control: str, where: str) -> None:
    directory = world.root / "jobs"
    if control == "lost" and (directory / "control").exists():
        lose_control_page(directory)
    # Where the control page is kept, the index is, too: what the killed process left of it.
    index = world.index if control == "kept" else None
    wrong = look_at(directory, world.witness.finally_(), world.clock, scratch=index)
    if (world.root / "copy").exists() and world.copy is not None:
        there = world.witness.at(world.copy.begun)
        wrong += look_at(world.root / "copy", there, world.clock)
    calls = world.vfs.calls  # type: ignore[attr-defined]
    assert not wrong, (
        f"killed at call {where}, control page {control}: {wrong}; calls: {calls}"
    )


@pytest.mark.parametrize("name", CASES)
def test_an_operation(stores, name):
    survived = kill_everywhere(stores, CASES[name])

    print(f"{name}: kill points survived {survived}/{survived}")
    assert survived > 8


def test_a_recovery_of_what_a_killed_recovery_left(stores):
    survived = number = 0
    dead = True
    while dead:
        with (
            stores.one() as root,
            killed_at(root, CASES["recover"], number, True) as world,
        ):
            dead = world is not None
            if world is not None:
                survived += kill_once_more(world, number)
        number += 1
    print(f"recovery after recovery: kill points survived {survived}/{survived}")
    assert survived > 100


def kill_once_more(first: World, offset: int) -> int:
    """Kill one recovery after the other, each a little later; then look."""
    kills = 0
    for number in range(offset % STRIDE, 1000, STRIDE):
        files = Dying()
        world = World(first.root, files, clock=first.clock, witness=first.witness)
        files.live_until(number, after=False)
        with contextlib.suppress(Killed):
            world.open()
        world.close()
        if not files.is_dead:
            break
        kills += 1
        if (first.root / "jobs" / "control").exists():
            lose_control_page(world.directory)
    look(first, "lost", f"{offset}, and {kills} times more")
    return kills
