"""The serializers that come ready made: equal on the way back, or refused by path."""

from __future__ import annotations

import datetime as dt
import math
import sys

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_nobroker import JsonSerializer, MsgpackSerializer
from django_nobroker.exceptions import SerializationError
from django_nobroker.payload import DEPTH

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.binary()
    | TEXT
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(SCALARS, inner),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def packer():
    return MsgpackSerializer()


@given(VALUES)
def test_messagepack_gives_back_what_it_was_given(packer, value):
    assert packer.loads(packer.dumps(value)) == value


@given(st.recursive(TEXT | st.integers(), st.lists, max_leaves=5))
def test_json_gives_back_what_it_was_given(value):
    serializer = JsonSerializer()

    assert serializer.loads(serializer.dumps(value)) == value


@pytest.mark.parametrize(
    "value",
    [math.inf, -0.0, msgpack.Timestamp(1, 2), msgpack.ExtType(5, b"x"), {1: {2: 3}}],
)
def test_messagepack_knows_more_than_json(packer, value):
    assert packer.loads(packer.dumps(value)) == value
    assert math.isnan(packer.loads(packer.dumps(math.nan)))


BAD = [
    {1, 2},
    dt.datetime(2026, 1, 1),
    object(),
    2**64,
    -(2**63) - 1,
    "\ud800",
    {(1, 2): 3},
    {frozenset(): 3},
    1j,
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (lambda bad: bad, "payload"),
        (lambda bad: {"when": bad}, "payload['when']"),
        (lambda bad: [0, {1: (1, bad)}], "payload[1][1][1]"),
    ],
    ids=["alone", "in a dict", "deep inside"],
)
def test_what_cannot_be_packed_is_refused_with_its_path(packer, bad, wrap, path):
    with pytest.raises(SerializationError) as caught:
        packer.dumps(wrap(bad))

    assert str(caught.value).startswith("Unsupported type ")
    assert f" at {path}: " in str(caught.value)


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"a": v}, lambda v: (v, 1)])
def test_nesting_of_200_comes_back_and_more_is_refused(packer, wrap):
    def nested(depth):
        value = wrap(1)
        for _ in range(depth - 1):
            value = wrap(value)
        return value

    back = packer.loads(packer.dumps(nested(DEPTH)))

    assert packer.dumps(back) == packer.dumps(nested(DEPTH))
    for depth in (DEPTH + 1, 900, 100_000):
        with pytest.raises(SerializationError, match=r"payload.* nested more than 200"):
            packer.dumps(nested(depth))


def test_a_value_that_contains_itself_is_refused(packer):
    value = []
    value.append(value)

    with pytest.raises(SerializationError, match="nested"):
        packer.dumps(value)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x92\x01", b"\x01\x02", b"\xa1\xff"])
def test_bytes_that_are_no_messagepack_are_a_value_error(packer, data):
    with pytest.raises(ValueError):
        packer.loads(data)


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "msgpack", None)

    with pytest.raises(ImportError, match=r"pip install 'django-nobroker\[msgpack\]'"):
        MsgpackSerializer()
