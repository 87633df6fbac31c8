"""The round trip of payloads: equal, or refused with the place."""

from __future__ import annotations

import collections
import datetime as dt
import decimal
import enum
import math
import uuid
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_nobroker import payload
from django_nobroker.exceptions import NobrokerError, SerializationError

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**300), 10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(TEXT, inner, max_size=6)
    ),
    max_leaves=20,
)


def shape(value):
    """The value with its types, so that True, 1 and 1.0 differ, and 0.0 and -0.0."""
    if isinstance(value, list):
        return [shape(item) for item in value]
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return type(value).__name__, repr(value)


class Colour(enum.Enum):
    RED = "red"


class Word(enum.StrEnum):
    YES = "yes"


class Number(enum.IntEnum):
    ONE = 1


class Point(NamedTuple):
    x: int
    y: int


@given(VALUES)
def test_what_is_accepted_comes_back_equal_and_of_the_same_types(value):
    text, back = payload.encode(value)

    assert shape(payload.loads(text)) == shape(value)
    assert shape(back) == shape(value)


@given(VALUES)
def test_the_order_of_keys_is_kept(value):
    text = payload.dumps({"outer": value})

    assert repr(payload.loads(text)) == repr({"outer": value})


@pytest.mark.parametrize(
    "value",
    [
        0,
        2**53 + 1,
        2**63,
        -(2**63) - 1,
        2**64 - 1,
        2**64,
        10**1000,
        0.1,
        1e308,
        5e-324,
        1e16,
        "\x00\x1f\x7f\u2028\U0001f600",
        {"": ""},
        [[], {}, [[]]],
    ],
)
def test_values_at_the_edges_come_back_equal(value):
    assert shape(payload.loads(payload.dumps(value))) == shape(value)


@given(st.lists(VALUES, max_size=5).map(tuple))
def test_a_tuple_comes_back_as_a_list(value):
    assert shape(payload.loads(payload.dumps(value))) == shape(list(value))


@pytest.mark.parametrize(
    ("value", "back"),
    [
        (("a", ("b",)), ["a", ["b"]]),
        ({"at": Point(1, 2)}, {"at": [1, 2]}),
        (Word.YES, "yes"),
        ([Number.ONE], [1]),
        (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
    ],
)
def test_subclasses_of_json_types_come_back_as_the_plain_type(value, back):
    text, read = payload.encode(value)

    assert shape(payload.loads(text)) == shape(back)
    assert shape(read) == shape(back)


BAD = [
    math.nan,
    math.inf,
    -math.inf,
    b"bytes",
    bytearray(b"bytes"),
    {1, 2},
    frozenset({1}),
    {1: "a"},
    {None: "a"},
    {True: "a"},
    {1.5: "a"},
    {("a",): "a"},
    dt.datetime(2026, 1, 1),
    dt.date(2026, 1, 1),
    dt.timedelta(1),
    decimal.Decimal("1.5"),
    uuid.UUID(int=1),
    Colour.RED,
    object(),
    Exception("text"),
    print,
    range(3),
    (number for number in range(3)),
    1j,
    "\ud800",
    "ok\udfff",
    {"\ud800": 1},
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (lambda bad: bad, "payload"),
        (lambda bad: {"when": bad}, "payload['when']"),
        (lambda bad: [0, {"a": (1, bad)}], "payload[1]['a'][1]"),
    ],
    ids=["alone", "in a dict", "deep inside"],
)
def test_what_cannot_make_the_round_trip_is_refused_with_its_path(bad, wrap, path):
    with pytest.raises(SerializationError) as caught:
        payload.dumps(wrap(bad))

    assert str(caught.value).startswith("Unsupported type ")
    assert f" at {path}: " in str(caught.value)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, NobrokerError)


def test_the_path_begins_with_the_name_that_the_caller_gives():
    with pytest.raises(SerializationError, match=r"kwargs\['when'\]"):
        payload.dumps({"when": {1}}, "kwargs")


def test_the_message_can_be_printed_whatever_the_value_was():
    with pytest.raises(SerializationError) as caught:
        payload.dumps({"\ud800": object()})

    str(caught.value).encode()


def nested(depth, wrap):
    value = wrap(1)
    for _ in range(depth - 1):
        value = wrap(value)
    return value


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"a": v}])
def test_nesting_of_200_comes_back_and_more_is_refused(wrap):
    deepest = nested(payload.DEPTH, wrap)

    assert payload.loads(payload.dumps(deepest)) == deepest
    for depth in (payload.DEPTH + 1, 900, 2_000, 100_000):
        with pytest.raises(SerializationError, match=r"payload.* nested more than 200"):
            payload.dumps(nested(depth, wrap))


def test_a_value_that_contains_itself_is_refused():
    value = []
    value.append(value)

    with pytest.raises(SerializationError, match="nested"):
        payload.dumps(value)


def test_an_integer_of_thousands_of_digits_is_refused_rather_than_unreadable():
    with pytest.raises(SerializationError, match=r"payload\['n'\]"):
        payload.dumps({"n": 10**5000})


def test_eight_mebibytes_of_json_are_the_limit():
    longest = "x" * (payload.LIMIT - 2)

    assert len(payload.dumps(longest)) == payload.LIMIT
    with pytest.raises(SerializationError, match="payload is 8388609 bytes"):
        payload.dumps(longest + "x")


@given(VALUES)
def test_what_was_read_back_shares_nothing_with_the_value(value):
    _, back = payload.encode([value])
    before = repr(back)
    if isinstance(value, list):
        value.append("more")
    elif isinstance(value, dict):
        value["more"] = "more"

    assert repr(back) == before


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"nul",
        b"\xff",
        b'"\xff"',
        b"[NaN]",
        b"-Infinity",
        b"1" * 5000,
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
    ],
    ids=lambda text: repr(text[:10]),
)
def test_text_that_is_no_json_is_a_value_error(text):
    with pytest.raises(ValueError):
        payload.loads(text)
