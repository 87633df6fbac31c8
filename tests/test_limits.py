"""What the arguments of a queue may be."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_nobroker import limits

CONTROL = st.characters(categories=["Cc", "Cs"])


@given(
    st.text(
        st.characters(exclude_categories=["Cc", "Cs"]),
        min_size=1,
        max_size=limits.NAME_LIMIT,
    )
)
def test_a_name_is_any_text_of_up_to_200_characters(text):
    assert limits.name(text, "name") == text


@given(st.text(max_size=99), CONTROL, st.text(max_size=100))
def test_a_name_holds_no_control_character_and_no_half_surrogate(before, bad, after):
    with pytest.raises(ValueError, match="job_id"):
        limits.name(before + bad + after, "job_id")


@pytest.mark.parametrize("text", ["", "x" * 201])
def test_a_name_is_neither_empty_nor_longer(text):
    with pytest.raises(ValueError, match="1 to 200"):
        limits.name(text, "name")


@pytest.mark.parametrize("value", [None, 1, b"emails", ["emails"]])
def test_a_name_is_a_string(value):
    with pytest.raises(TypeError, match="name must be a string"):
        limits.name(value, "name")


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_an_integer_is_neither_a_bool_nor_a_float(value):
    with pytest.raises(TypeError, match="count must be an integer"):
        limits.whole(value, "count")


def test_an_integer_may_have_a_least_value():
    assert limits.whole(1, "count", at_least=1) == 1
    with pytest.raises(ValueError, match="at least 1, not 0"):
        limits.whole(0, "count", at_least=1)


@given(st.integers(-(2**15), 2**15 - 1))
def test_a_priority_fits_into_16_bits(value):
    assert limits.priority(value) == value


@pytest.mark.parametrize("value", [-(2**15) - 1, 2**15, 10**30])
def test_a_priority_beyond_16_bits_is_refused(value):
    with pytest.raises(ValueError, match="priority must be between -32768 and 32767"):
        limits.priority(value)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**9), 10**9))
def test_seconds_are_any_finite_number(value):
    assert limits.seconds(value, "wait") == value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_seconds_are_finite(value):
    with pytest.raises(ValueError, match="wait must be finite"):
        limits.seconds(value, "wait")


@pytest.mark.parametrize("value", [True, "1", None])
def test_seconds_are_a_number(value):
    with pytest.raises(TypeError, match="wait must be a number of seconds"):
        limits.seconds(value, "wait")


@pytest.mark.parametrize("value", [0, -1, -0.0])
def test_seconds_may_have_to_be_more_than_a_bound(value):
    with pytest.raises(ValueError, match="must be more than 0"):
        limits.seconds(value, "visibility_timeout", above=0)


@given(st.floats(max_value=0, allow_infinity=False))
def test_a_negative_delay_is_none(value):
    assert limits.delay(value, time.time()) == 0


def test_a_delay_ends_with_the_year_9999():
    year = 365.2425 * 24 * 3600

    assert limits.delay(7000 * year, time.time()) == 7000 * year
    with pytest.raises(ValueError, match="before the year 10000"):
        limits.delay(8000 * year, time.time())


@pytest.mark.parametrize("value", [(), (OSError,), [KeyError, SystemExit]])
def test_exceptions_are_any_classes_of_them(value):
    assert limits.exceptions(value, "permanent_errors") == tuple(value)


@pytest.mark.parametrize("value", [OSError, ("OSError",), (OSError(),), (int,), None])
def test_exceptions_are_classes_in_a_tuple(value):
    with pytest.raises(TypeError, match="permanent_errors must be a tuple"):
        limits.exceptions(value, "permanent_errors")


def test_an_object_must_be_of_its_class():
    assert limits.instance("a", str, "name") == "a"
    with pytest.raises(TypeError, match="name must be a str, not int"):
        limits.instance(1, str, "name")


def test_a_function_can_be_called():
    limits.function(print, "handler")
    with pytest.raises(TypeError, match="handler must be callable, not str"):
        limits.function("print", "handler")
