"""Two processes, in whatever order their system calls happen, agree on one store."""

from __future__ import annotations

import functools
import itertools
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_nobroker.engine.errors import CompactionError, DirectoryExistsError
from tests.engine.driving import lose_control_page
from tests.faults.checker import Quick
from tests.faults.cuts import look_at
from tests.faults.places import Places
from tests.faults.turns import Actor, take_turns
from tests.faults.witness import Expected
from tests.faults.world import World

#: What a process may be at: each entry a few operations that belong together.
PROGRAMS = {
    "enqueue": ["enqueue", "enqueue"],
    "batch": ["batch"],
    "with_id": ["with_id", "with_id"],
    "work": ["lease", "ack"],
    "fail": ["lease", "nack"],
    "bury": ["lease", "bury", "requeue"],
    "roll": ["roll", "enqueue"],
    "compact": ["compact"],
    "expire": ["expire"],
    "rebuild": ["rebuild", "enqueue"],
    "verify": ["verify"],
    "backup": ["backup"],
    "reopen": ["close", "open", "enqueue"],
}
#: These take ended jobs away, also those that another process has just finished.
CLEANERS = {"compact", "expire"}
#: Answers to two that want the same at once.
REFUSALS = (CompactionError, DirectoryExistsError)
#: Examples of each of four tests; a campaign asks for more.
EXAMPLES = int(os.environ.get("NOBROKER_INTERLEAVINGS", "60"))
figures: Counter[str] = Counter()

programs = st.sampled_from(sorted(PROGRAMS))
orders = st.lists(
    st.tuples(st.integers(0, 1), st.integers(1, 12)), min_size=0, max_size=30
)
kills = st.none() | st.tuples(st.integers(0, 1), st.integers(0, 60))


def run(names: list[str], order, kill, stores: Places) -> None:
    with stores.one() as root:
        past = World(root, Quick())
        past.live()
        past.close()
        actors = [Actor(), Actor()]
        worlds = [
            past.beside(actor, handle)
            for actor, handle in zip(actors, "ab", strict=True)
        ]
        for world in worlds:
            world.open()
        for actor, world, name in zip(actors, worlds, names, strict=True):
            actor.start(functools.partial(follow, world, name), world.close)
        turns = itertools.chain.from_iterable(
            itertools.repeat(who, times) for who, times in order
        )
        figures["turns"] += take_turns(actors, turns, kill=kill)
        for world in worlds:
            world.close()
        calls = [actor.calls for actor in actors]
        told = [actor.error for actor in actors]
        errors = [one for one in told if one and not isinstance(one, REFUSALS)]
        assert not errors, f"{errors}; {calls}"
        figures["interleavings"] += 1
        look(root, past, names, calls)


def follow(world: World, name: str) -> None:
    for operation in PROGRAMS[name]:
        getattr(world, operation)()


def look(root: Path, past: World, names: list[str], calls) -> None:
    expected = past.witness.finally_()
    if CLEANERS & set(names):
        _let_ended_jobs_go(expected)
    wrong = look_at(root / "jobs", expected, past.clock)
    assert not wrong, f"{wrong}; {calls}"
    lose_control_page(root / "jobs")
    expected.jobs["check"] = ["done"]
    wrong = look_at(root / "jobs", expected, past.clock)
    assert not wrong, f"without its control page: {wrong}; {calls}"


def _let_ended_jobs_go(expected: Expected) -> None:
    for states in expected.jobs.values():
        if "done" in states:
            states += ["absent", "forgotten"]


@pytest.fixture(scope="module")
def shared():
    from tests.faults.places import places

    with places() as lent:
        yield lent
    number, turns = figures["interleavings"], figures["turns"]
    print(f"{turns} turns: interleavings agreed {number}/{number}")


@pytest.mark.parametrize("number", range(4))
def test_any_two_processes_agree(shared, number):
    @settings(
        max_examples=EXAMPLES, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(names=st.lists(programs, min_size=2, max_size=2), order=orders, kill=kills)
    def any_two(names, order, kill):
        run(names, order, kill, shared)

    any_two()


@pytest.mark.parametrize("other", sorted(PROGRAMS))
def test_a_compaction_beside_anything(shared, other):
    """Each lets the other make a call at every place: all orders with two changes."""
    for first in range(0, 90, 6):
        for times in (1, 7, 40):
            run(["compact", other], [(0, first), (1, times)], None, shared)
