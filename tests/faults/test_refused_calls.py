"""Whatever call fails, the caller is told the truth, and nothing acknowledged is lost."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from django_nobroker.engine.errors import NobrokerError, StoreFailedError
from tests.engine.driving import lose_control_page
from tests.faults.cuts import look_at
from tests.faults.files import SYNCS, Call, FaultyFiles, fails, writes_short
from tests.faults.places import Places
from tests.faults.world import CASES, Case, World

FAULTS = {
    "EIO": fails(errno.EIO),
    "ENOSPC": fails(errno.ENOSPC),
    "short": writes_short(7),
    "nothing": writes_short(0),
}


def refuse_everywhere(stores: Places, case: Case, fault: str) -> tuple[int, int]:
    """Refuse each call in turn; return how many were met, and how many were told."""
    met = told = 0
    calls = calls_of(stores, case)
    only_writes = fault in ("short", "nothing")
    for number, call in enumerate(calls):
        if not _can_fail(call) or (only_writes and call.name != "write"):
            continue
        with stores.one() as root:
            world = begun(root, case)
            met += 1
            told += _refused_at(world, case.operation, number, fault, call.name)
    return met, told


def _can_fail(call: Call) -> bool:
    """Tell whether the kernel may refuse it: closing and unlocking always happen."""
    unlocks = call.name == "flock" and call.arguments[1] == fcntl.LOCK_UN
    return call.name != "close" and not unlocks


def begun(root: Path, case: Case) -> World:
    files = FaultyFiles()
    world = World(root, files)
    for operation in case.before:
        operation(world)
    files.forget()
    return world


def calls_of(stores: Places, case: Case) -> list[Call]:
    with stores.one() as root:
        world = begun(root, case)
        case.operation(world)
        calls = list(world.vfs.calls)  # type: ignore[attr-defined]
        world.close()
        return calls


def _refused_at(world: World, operation, number: int, fault: str, name: str) -> bool:
    files = world.vfs
    assert isinstance(files, FaultyFiles)
    files.at(number, FAULTS[fault])
    where = f"{fault} at call {number} ({name})"
    error: BaseException | None = None
    try:
        operation(world)
    except NobrokerError as raised:
        error = raised
    except Exception as raised:
        raise AssertionError(f"{where}: {raised!r} is no error of ours") from raised
    files.forget()
    assert error is not None or name not in SYNCS, f"{where}: nobody was told"
    # A sync of the log that failed is final, whoever asks, until the machine restarts.
    if isinstance(error, StoreFailedError):
        assert name in SYNCS, where
        if world.is_open:
            with pytest.raises(StoreFailedError):
                world.enqueue()
        world.close()
        world.open()
        with pytest.raises(StoreFailedError):
            world.enqueue()
        world.clock.restart()
    elif world.is_open:
        world.enqueue()
        world.verify()
    world.close()
    wrong = look_at(world.root / "jobs", world.witness.finally_(), world.clock)
    assert not wrong, f"{where}, {error!r}: {wrong}"
    lose_control_page(world.directory)
    wrong = look_at(world.root / "jobs", with_checks(world), world.clock)
    assert not wrong, f"{where}, {error!r}, later: {wrong}"
    return error is not None


def with_checks(world: World):
    """The checker adds a job of its own, which is done."""
    expected = world.witness.finally_()
    expected.jobs["check"] = ["done"]
    return expected


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", CASES)
def test_an_operation(stores, name, fault):
    met, told = refuse_everywhere(stores, CASES[name], fault)

    print(f"{name}, {fault}, told {told}: refused calls survived {met}/{met}")
