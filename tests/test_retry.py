"""How long a failed job waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_nobroker import BackoffPolicy

SECONDS = st.floats(0, 1e12)


def test_without_jitter_the_delay_doubles_up_to_the_ceiling():
    policy = BackoffPolicy(jitter=0)

    delays = [policy.delay(attempt) for attempt in range(1, 12)]

    assert delays == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_the_defaults_are_one_second_doubling_to_five_minutes_half_of_it_random():
    assert BackoffPolicy(1.0, 2.0, 300.0, 0.5) == BackoffPolicy()


@given(
    base=SECONDS,
    factor=st.floats(1, 1e300),
    max_delay=SECONDS,
    jitter=st.floats(0, 1),
    attempt=st.integers(-5, 10**9),
)
def test_a_delay_is_never_negative_nor_beyond_the_ceiling(
    base, factor, max_delay, jitter, attempt
):
    delay = BackoffPolicy(base, factor, max_delay, jitter).delay(attempt)

    assert 0 <= delay <= max_delay


@pytest.mark.parametrize(
    ("base", "factor", "max_delay", "attempt"),
    [(7.0, 10.0, 7e39, 40), (5e-324, 1e308, 1e300, 3), (1e308, 1e308, 1.0, 10**6)],
)
def test_rounding_and_overflow_do_not_lift_the_ceiling(
    base, factor, max_delay, attempt
):
    policy = BackoffPolicy(base, factor, max_delay, jitter=0)

    assert 0 <= policy.delay(attempt) <= max_delay


@given(base=st.floats(1e-3, 1e3), jitter=st.floats(0, 1), attempt=st.integers(1, 8))
def test_jitter_takes_away_at_most_its_share(base, jitter, attempt):
    whole = BackoffPolicy(base, 2.0, 1e9, 0).delay(attempt)
    delay = BackoffPolicy(base, 2.0, 1e9, jitter).delay(attempt)

    assert whole * (1 - jitter) * (1 - 1e-9) <= delay <= whole


def test_jobs_that_failed_together_do_not_come_back_together():
    assert len({BackoffPolicy().delay(5) for _ in range(50)}) > 25


@given(attempt=st.integers(1, 10**9))
def test_a_factor_of_one_always_waits_the_same(attempt):
    assert BackoffPolicy(base=7, factor=1, jitter=0).delay(attempt) == 7


@given(attempt=st.integers(-(10**9), 0))
def test_before_any_attempt_there_is_nothing_to_wait_for(attempt):
    assert BackoffPolicy().delay(attempt) == 0


@pytest.mark.parametrize("name", ["base", "factor", "max_delay", "jitter"])
@pytest.mark.parametrize("value", ["1", None, True, 1j])
def test_a_wrong_type_is_a_type_error_that_names_the_argument(name, value):
    with pytest.raises(TypeError, match=name):
        BackoffPolicy(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("base", -1),
        ("base", float("nan")),
        ("base", float("inf")),
        ("base", 10**400),
        ("factor", 0.5),
        ("factor", -2),
        ("max_delay", -1),
        ("max_delay", float("inf")),
        ("jitter", -0.1),
        ("jitter", 1.1),
        ("jitter", float("nan")),
    ],
)
def test_a_wrong_value_is_a_value_error_that_names_the_argument(name, value):
    with pytest.raises(ValueError, match=name):
        BackoffPolicy(**{name: value})
