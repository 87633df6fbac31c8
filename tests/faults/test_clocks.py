"""No step of the wall clock touches a lease; another start of the machine ends all."""

from __future__ import annotations

import pytest

from django_nobroker.engine.errors import NotLeasedError
from tests.engine.driving import ack, add, look_for_work, take_one
from tests.faults.checker import Quick
from tests.faults.world import World

DAY = 86_400.0


@pytest.fixture
def world(stores):
    with stores.one() as root:
        made = World(root, Quick())
        made.open()
        yield made
        made.close()


@pytest.mark.parametrize("step", [DAY, -DAY, 3600.0, -1.0, 40.0])
def test_a_step_of_the_wall_clock_neither_ends_nor_prolongs_a_lease(world, step):
    add(world.store, max_attempts=5)
    job = take_one(world.store, seconds=30.0)

    world.clock.step_wall(step)
    assert look_for_work(world.store).lost == 0
    world.clock.advance(29.0)
    assert look_for_work(world.store).lost == 0
    world.clock.advance(2.0)
    assert look_for_work(world.store).lost == 1
    with pytest.raises(NotLeasedError):
        ack(world.store, job)


def test_another_start_of_the_machine_ends_every_lease(world):
    add(world.store, max_attempts=5)
    job = take_one(world.store, seconds=DAY)
    world.close()
    world.clock.restart()
    world.open()

    assert take_one(world.store).position == job.position
    with pytest.raises(NotLeasedError):
        ack(world.store, job)
