"""Tokens and deadlines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from django_nobroker.engine.lease import Token, extended_deadline, heartbeat_deadline

moment = st.floats(min_value=0, max_value=1e9, allow_nan=False)


@given(current=moment, now=moment, seconds=moment)
def test_an_extension_never_shortens_and_gives_at_least_what_was_asked(
    current, now, seconds
):
    until = extended_deadline(current, now, seconds)

    assert until >= current
    assert until >= now + seconds
    assert until in (current, now + seconds)


@given(now=moment, timeout=moment)
def test_a_heartbeat_reaches_exactly_one_timeout_from_now(now, timeout):
    assert heartbeat_deadline(now, timeout) == now + timeout


def test_the_same_place_in_another_epoch_is_another_token():
    """A power cut may lose a lease record, and another is written at its place."""
    assert Token(1, 500) != Token(2, 500)
