"""Whenever the power fails, what was acknowledged is there."""

from __future__ import annotations

import pytest

from tests.faults.cuts import Recorded, cut_everywhere
from tests.faults.world import CASES, World


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
