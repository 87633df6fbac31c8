"""Bytes of any serializer in the log, and JSON that only looks like them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_nobroker import envelope
from django_nobroker.envelope import Sealed

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
KEYS = st.sampled_from(["$bytes", "$json", "serializer", "$", "a"])
LIKE_TAGS = st.recursive(
    TEXT | st.integers() | st.none(),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner),
    max_leaves=8,
)


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@given(TEXT, st.binary())
def test_what_was_sealed_is_unwrapped_as_it_was(name, data):
    text = envelope.seal(Sealed(name, data))

    assert envelope.unwrap(text) == Sealed(name, data)
    assert json.loads(text)["serializer"] == name


@given(LIKE_TAGS)
def test_json_that_looks_like_a_tag_is_unwrapped_as_the_same_text(value):
    text = compact(value)

    guarded = envelope.guard(text)

    assert envelope.unwrap(guarded) == text
    json.loads(guarded)


def test_ordinary_json_is_left_as_it_is():
    for text in (b"1", b"{}", b'{"a":{"$bytes":""}}', b'{"$by":1}', b'["$bytes"]'):
        assert envelope.guard(text) is text
        assert envelope.unwrap(text) is text


def test_sealed_bytes_can_be_read_with_any_tool():
    assert envelope.seal(Sealed("msgpack", b"\x81\xa1a\x01")) == (
        b'{"$bytes":"gaFhAQ==","serializer":"msgpack"}'
    )


@pytest.mark.parametrize(
    "text",
    [
        b'{"$bytes":"',
        b'{"$bytes":1,"serializer":"a"}',
        b'{"$bytes":"AA=="}',
        b'{"$bytes":"?","serializer":"a"}',
        b'{"$bytes":"AAA","serializer":"a"}',
        b'{"$bytes":"\xc3\xa9","serializer":"a"}',
        b'{"$bytes":"\xff","serializer":"a"}',
        b'{"$bytes":"AA==","serializer":"a","more":1}',
    ],
)
def test_a_damaged_tag_is_a_value_error(text):
    with pytest.raises(ValueError, match="the tagged bytes are damaged"):
        envelope.unwrap(text)
