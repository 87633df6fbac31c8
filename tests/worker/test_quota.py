"""The places of ``max_jobs``, shared by threads."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from django_nobroker.worker.quota import Quota


def test_without_a_limit_everybody_gets_what_they_ask_for():
    quota = Quota(None, 4)

    assert [quota.reserve(64), quota.reserve(64)] == [64, 64]


def test_few_places_are_shared_fairly():
    quota = Quota(10, 4)

    assert [quota.reserve(64) for _ in range(12)] == [
        2,
        2,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        0,
        0,
        0,
    ]


def test_a_place_that_was_given_up_is_there_again():
    quota = Quota(1, 1)
    assert (quota.reserve(1), quota.reserve(1)) == (1, 0)

    quota.give_up(1)

    assert quota.reserve(5) == 1


@given(st.integers(0, 50), st.integers(1, 8), st.lists(st.integers(1, 64)))
def test_never_more_than_the_limit_and_one_while_there_is_any(most, sharers, wishes):
    quota = Quota(most, sharers)
    given_out = 0
    for wish in wishes:
        got = quota.reserve(wish)
        assert min(1, most - given_out) <= got <= wish
        given_out += got
    assert given_out <= most
