"""The round trip of arguments and results."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from django_nobroker import arguments
from django_nobroker.exceptions import SerializationError

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(st.lists(json_values, max_size=4), st.dictionaries(st.text("abc"), json_values))
def test_what_json_knows_makes_the_round_trip(args, kwargs):
    payload, call = arguments.round_trip("app.f", args, kwargs)
    read = arguments.load_call(payload)

    assert (read.path, read.args, read.kwargs) == ("app.f", args, kwargs)
    assert read == call


def test_the_payload_is_what_the_documentation_says():
    payload, _ = arguments.round_trip("app.f", (1, "é"), {"when": None})

    assert json.loads(payload) == {
        "task": "app.f",
        "args": [1, "é"],
        "kwargs": {"when": None},
    }


def test_a_tuple_is_a_list_on_both_sides():
    _, call = arguments.round_trip("app.f", [(1, (2,))], {"pair": (3, 4)})

    assert (call.args, call.kwargs) == ([[1, [2]]], {"pair": [3, 4]})


def test_a_later_change_of_an_argument_changes_nothing():
    numbers = [1]
    _, call = arguments.round_trip("app.f", [numbers], {})
    numbers.append(2)

    assert call.args == [[1]]


@pytest.mark.parametrize(
    "value",
    [
        b"bytes",
        {1, 2},
        datetime(2026, 1, 1, tzinfo=UTC),
        Decimal("1.5"),
        UUID(int=1),
        float("nan"),
        float("inf"),
        {1: "a"},
        {None: 1},
        {(1, 2): 3},
        object(),
        gettext_lazy("Hello"),
        "half a pair \ud800",
        lambda: None,
        (number for number in [1]),
        10**5000,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_does_not_know_is_refused_with_its_path(value):
    with pytest.raises(SerializationError, match=r"Unsupported type.*kwargs\['when'\]"):
        arguments.round_trip("app.f", [], {"when": value})
    with pytest.raises(SerializationError, match=r"args\[1\]\['deep'\]\[0\]"):
        arguments.round_trip("app.f", [0, {"deep": [value]}], {})
    with pytest.raises(TypeError, match=r"^Unsupported type"):
        arguments.dump_result(value)


def test_more_than_eight_mebibytes_are_refused():
    half = "x" * (5 * 1024 * 1024)
    arguments.round_trip("app.f", [half], {})

    with pytest.raises(SerializationError, match="8388608 is the limit"):
        arguments.round_trip("app.f", [half], {"more": half})
    with pytest.raises(SerializationError, match="limit"):
        arguments.round_trip("app.f", [half + half], {})
    with pytest.raises(SerializationError, match="limit"):
        arguments.dump_result(half + half)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"not json",
        b"[]",
        b'{"task":"app.f"}',
        b'{"task":5,"args":[],"kwargs":{}}',
        b'{"task":"app.f","args":{},"kwargs":{}}',
        b'"hello"',
    ],
)
def test_a_payload_of_somebody_else_is_told_apart(payload):
    with pytest.raises(ValueError):
        arguments.load_call(payload)


def test_a_result_makes_the_round_trip():
    assert arguments.load_result(arguments.dump_result({"a": (1, None)})) == {
        "a": [1, None]
    }
    assert arguments.load_result(arguments.dump_result(None)) is None
    assert arguments.load_result(None) is None
