"""What arguments of the command line may be."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_nobroker.cli import values

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(plain)
def test_json_is_read_as_json(value):
    assert values.value(json.dumps(value)) == value


@pytest.mark.parametrize(
    "text", ["hello", "", "{a: 1}", "NaN", "-Infinity", "[1", "'x'"]
)
def test_any_other_text_is_a_string(text):
    assert values.value(text) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("90", 90), ("1.5m", 90), ("2h", 7200), ("7d", 604800), ("1 w", 604800)],
)
def test_an_age_is_seconds_or_has_a_unit(text, seconds):
    assert values.age(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", "1y", "nan", "inf", "1d2h"])
def test_what_is_no_age_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="must be seconds"):
        values.age(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [("tasks:handle", ("tasks", "handle")), ("a.b:C.run", ("a.b", "C.run"))],
)
def test_a_function_is_named_by_module_and_name(text, found):
    assert values.function(text) == found


@pytest.mark.parametrize(
    "text", ["", "tasks", "tasks:", ":f", "a b:c", "a:b:c", "../a:b"]
)
def test_what_names_no_function_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="MODULE:FUNCTION"):
        values.function(text)
