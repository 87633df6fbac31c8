from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from django_nobroker.admin.moments import duration, moment, span

IMPOSSIBLE = [1e300, -1e300, float("inf"), float("nan"), 1e15]


def test_a_time_is_aware_when_the_project_uses_time_zones(settings):
    settings.USE_TZ = True

    assert moment(0.5) == datetime(1970, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)


def test_a_time_is_local_when_the_project_uses_none(settings, monkeypatch):
    settings.USE_TZ = False
    monkeypatch.setenv("TZ", "Etc/GMT-3")
    time.tzset()
    try:
        assert moment(0.0) == datetime(1970, 1, 1, 3)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("seconds", [*IMPOSSIBLE, None])
def test_a_time_that_no_calendar_holds_is_none(seconds):
    assert moment(seconds) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (float("nan"), ""),
        (float("inf"), ""),
        (-5.0, "0 seconds"),
        (1.9, "1 second"),
        (59.9, "59 seconds"),
        (60.0, "1\xa0minute"),
        (3 * 3600 + 300.0, "3\xa0hours, 5\xa0minutes"),
        (1e13, "very long"),
    ],
)
@pytest.mark.parametrize("use_tz", [True, False])
def test_a_span_is_told_in_words(settings, seconds, words, use_tz):
    settings.USE_TZ = use_tz

    assert span(seconds) == words


def test_a_duration_is_exact_when_it_is_short():
    assert duration(10.0, 10.44) == "0.4 s"
    assert duration(10.0, 9.0) == "0.0 s"
    assert duration(0.0, 7200.0) == "2\xa0hours"
    assert duration(0.0, None) == ""
    assert duration(0.0, float("nan")) == ""
