"""Processes that are killed at any moment cost no acknowledged job."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from tests.campaigns.conducting import (
    Actor,
    acknowledged,
    chance_of,
    check,
    drain,
    judge,
    kill_at_random,
)

#: ``NOBROKER_KILLS=1000`` makes the campaign longer.
KILLS = int(os.environ.get("NOBROKER_KILLS", "100"))


@pytest.mark.parametrize(
    "kills",
    [pytest.param(15), pytest.param(KILLS, marks=pytest.mark.campaign)],
)
def test_killed_producers_and_workers_lose_and_double_nothing(tmp_path, kills):
    """Two producers and two workers on one store; one at a time is killed."""
    seed = int.from_bytes(os.urandom(4), "big")
    store = tmp_path / "jobs"
    with ExitStack() as stage:
        producers = [
            stage.enter_context(Actor("producer", store, name, scratch=tmp_path))
            for name in ("a", "b")
        ]
        workers = [
            stage.enter_context(Actor("consumer", store, scratch=tmp_path))
            for _ in range(2)
        ]
        kill_at_random(producers + workers, kills, chance_of(seed))
    last = drain(store, tmp_path)

    found = check(store, tmp_path)

    promised = acknowledged(producers)
    ended = {
        line[1]
        for actor in [*workers, last]
        for line in actor.lines
        if line[0] == "ended"
    }
    judge(found, promised, ended, kills, seed)
    assert promised
