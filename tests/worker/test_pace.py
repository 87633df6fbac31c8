"""How many jobs a thread leases at once, from how long the last ones took."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from django_nobroker.worker.pace import BUDGET, Pace

seconds = st.floats(0, 100)


def test_a_thread_begins_with_one_job():
    assert Pace(64).size == 1


def test_short_jobs_are_leased_together_step_by_step():
    pace = Pace(20)
    sizes = []
    for _ in range(7):
        sizes.append(pace.size)
        pace.learn(1e-6)

    assert sizes == [1, 2, 4, 8, 16, 20, 20]


@given(st.lists(seconds), st.floats(BUDGET, 100, exclude_min=True))
def test_after_a_job_that_takes_its_time_one_is_leased(before, long):
    pace = Pace(64)
    for one in before:
        pace.learn(one)

    pace.learn(long)

    assert pace.size == 1


@given(st.integers(1, 1000), st.lists(seconds, min_size=1))
def test_jobs_as_long_as_the_last_ones_fit_into_the_budget(most, took):
    pace = Pace(most)
    for one in took:
        before = pace.size
        pace.learn(one)

        assert 1 <= pace.size <= min(most, 2 * before)
        assert pace.size == 1 or pace.size * one <= BUDGET * (1 + 1e-9)
