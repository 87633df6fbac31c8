"""Times, spans and sizes as a person reads them."""

from __future__ import annotations

import pytest

from django_nobroker.cli import moments


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.000012, "12 µs"),
        (0.0123, "12.3 ms"),
        (0.5, "0.5 s"),
        (42, "42 s"),
        (90, "1.5 min"),
        (7200, "2 h"),
        (86400 * 7, "7 d"),
    ],
)
def test_a_span_is_told_in_its_largest_unit(seconds, text):
    assert moments.span(seconds) == text


def test_a_time_is_told_as_seen_from_now():
    assert moments.when(100.2, 100.0) == "now"
    assert moments.when(90, 100) == "10 s ago"
    assert moments.when(160, 100) == "in 1 min"


def test_a_time_beyond_all_calendars_is_told_as_a_number():
    assert moments.moment(1e300).startswith("1000000")
    assert moments.moment(None) == ""


def test_sizes_and_numbers_have_their_unit():
    assert moments.size(100) == "100 bytes"
    assert moments.size(1536) == "1.5 KiB"
    assert moments.size(3 << 20) == "3.0 MiB"
    assert moments.counted(1, "job") == "1 job"
    assert moments.counted(2, "job") == "2 jobs"
