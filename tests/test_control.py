"""The exceptions by which a task decides how its attempt ends."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_nobroker import Reject, Retry


@pytest.mark.parametrize(
    ("after", "seconds"),
    [(None, None), (30, 30.0), (0, 0.0), (1.5, 1.5), (timedelta(minutes=1), 60.0)],
)
def test_retry_takes_seconds_or_a_timedelta(after, seconds):
    assert Retry(after=after).after == seconds


@pytest.mark.parametrize("after", [-1, float("nan"), float("inf"), timedelta(-1)])
def test_retry_refuses_what_is_no_delay(after):
    with pytest.raises(ValueError):
        Retry(after=after)


@pytest.mark.parametrize("after", ["30", True, object()])
def test_retry_refuses_other_types(after):
    with pytest.raises(TypeError):
        Retry(after=after)


def test_both_have_a_text():
    assert str(Retry("later", after=1)) == "later"
    assert Reject("no such user").reason == str(Reject("no such user"))
