from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_nobroker import envelope, task
from django_nobroker.admin.arguments import MASK, ROWS_MAX, Redaction, read_arguments

REDACTION = Redaction(
    ("password", "passwd", "secret", "token", "api_key", "authorization")
)


@task
def log_in(user, password, attempts=1):
    """A task with a secret among its positional arguments."""


def shown(payload, kind=None, redaction=REDACTION):
    content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    found = read_arguments(content, kind, redaction)
    assert found.problem == ""
    return [(row.name, row.value) for row in found.rows]


def test_arguments_of_a_task_are_named_or_numbered():
    payload = {"task": "x.y", "args": [1, "a"], "kwargs": {"when": None}}

    assert shown(payload) == [("[0]", "1"), ("[1]", '"a"'), ("when", "null")]


def test_a_loaded_task_names_its_positional_arguments_and_so_its_secrets():
    payload = {"args": ["ann", "hunter2", 3, 4], "kwargs": {}}

    assert shown(payload, f"{__name__}.log_in") == [
        ("user", '"ann"'),
        ("password", MASK),
        ("attempts", "3"),
        ("[3]", "4"),
    ]


def test_a_payload_of_a_plain_queue_is_shown_as_it_is():
    assert shown({"to": "ann"}) == [("to", '"ann"')]
    assert shown([1, 2]) == [("payload", "[\n  1,\n  2\n]")]
    assert shown("text") == [("payload", '"text"')]
    assert shown({"args": 1, "kwargs": 2}) == [("args", "1"), ("kwargs", "2")]
    assert shown({"args": [], "kwargs": {}}) == []


@pytest.mark.parametrize(
    "name",
    ["password", "PASSWORD", "user_password", "X-Api-Key", "stripeApiKey", "apikey"],
)
def test_a_secret_is_known_by_its_name(name):
    assert shown({"args": [], "kwargs": {name: "hunter2"}}) == [(name, MASK)]


@pytest.mark.parametrize("name", ["user", "pass", "api", "key", "secre", ""])
def test_other_names_hide_nothing(name):
    assert shown({"args": [], "kwargs": {name: "x"}}) == [(name, '"x"')]


def test_a_secret_is_masked_however_deep_it_is():
    payload = {"args": [[{"a": {"token": {"inner": "hunter2"}, "b": 1}}]], "kwargs": {}}

    ((_, value),) = shown(payload)

    assert json.loads(value) == [{"a": {"token": MASK, "b": 1}}]


def test_without_names_nothing_is_masked():
    payload = {"args": [], "kwargs": {"password": "x"}}

    assert shown(payload, redaction=Redaction(())) == [("password", '"x"')]
    assert shown(payload, redaction=Redaction(("", "--"))) == [("password", '"x"')]


secrets = st.sampled_from(["password", "API_KEY", "my-token"])
json_values = st.recursive(
    st.just("hunter2"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
)


@given(secrets, json_values, st.lists(st.sampled_from(["list", "dict"]), max_size=5))
def test_no_value_under_a_secret_name_is_ever_shown(name, value, around):
    content: object = {name: value}
    for kind in around:
        content = [content] if kind == "list" else {"x": content}

    rows = shown({"args": [content], "kwargs": {}})

    assert "hunter2" not in rows[0][1]
    assert MASK in rows[0][1]


def test_of_very_many_arguments_the_first_are_shown():
    payload = json.dumps({"args": list(range(ROWS_MAX + 5)), "kwargs": {}}).encode()

    found = read_arguments(payload, None, REDACTION)

    assert len(found.rows) == ROWS_MAX
    assert found.left_out == 5


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "Expecting value"),
        (b"\xff\xff", "codec can't decode"),
        (b'{"args": ["hunter2"', "Expecting ',' delimiter"),
        (b"9" * 5000, "4300 digits"),
        (b"[" * 200_000, "nested too deep"),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "nested too deep"),
    ],
    ids=["empty", "not utf-8", "cut", "huge number", "deep lists", "deep objects"],
)
def test_what_cannot_be_decoded_is_told_and_not_shown(payload, reason):
    found = read_arguments(payload, None, REDACTION)

    assert found.rows == ()
    assert reason in found.problem
    assert f"({len(payload)} bytes)" in found.problem
    assert "hunter2" not in found.problem


@given(st.binary(max_size=50))
def test_bytes_of_any_sort_are_accepted(payload):
    found = read_arguments(payload, None, REDACTION)

    assert bool(found.problem) or found.rows is not None


def test_bytes_of_a_serializer_are_not_shown_as_they_could_not_be_masked():
    sealed = envelope.seal(envelope.Sealed("msgpack", b"hunter2"))

    found = read_arguments(sealed, None, REDACTION)

    assert found.rows == ()
    assert found.problem == (
        "The payload (7 bytes) was written by the serializer msgpack of a plain queue."
    )


def test_damaged_bytes_of_a_serializer_are_not_shown_either():
    found = read_arguments(b'{"$bytes":"hunter2"}', None, REDACTION)

    assert found.rows == ()
    assert "cannot be decoded" in found.problem
    assert "hunter2" not in found.problem


def test_json_that_looks_like_such_bytes_is_shown():
    payload = {"$bytes": "AA==", "token": "hunter2"}
    text = json.dumps(payload, separators=(",", ":")).encode()

    assert shown(envelope.guard(text)) == [("$bytes", '"AA=="'), ("token", MASK)]
