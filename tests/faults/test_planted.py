"""The tests of faults would notice: each planted bug makes the test fail that is for it."""

from __future__ import annotations

import os

import pytest

from tests.faults.planted import BUGS, VARIABLE, first_failure

pytestmark = pytest.mark.skipif(
    VARIABLE in os.environ, reason="one is planted, and is looked for elsewhere"
)


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name):
    expected = BUGS[name].caught_by

    found = first_failure(name, f"tests/faults/{expected}")

    assert found is not None, f"{name} was not noticed by {expected}"
    assert found.startswith(expected)


def test_there_are_enough_of_them():
    assert len(BUGS) >= 13
