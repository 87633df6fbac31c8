"""The clocks of the machine."""

from __future__ import annotations

import time

import pytest

from django_nobroker.engine import host
from django_nobroker.engine.clock import Clock


def test_the_wall_clock_is_the_systems():
    before = time.time()

    assert before <= Clock().wall() <= time.time()


@pytest.mark.linux
def test_the_boot_clock_never_goes_back_and_knows_no_time_zone():
    clock = Clock()
    first = clock.boot()

    assert clock.boot() >= first
    assert abs(first - time.clock_gettime(time.CLOCK_BOOTTIME)) < 60


@pytest.mark.linux
def test_the_offset_of_a_time_namespace_is_taken_out(monkeypatch):
    """Deadlines are compared across containers."""
    real = Clock().boot()
    monkeypatch.setattr(host, "boot_clock_offset", lambda: 1000.0)

    assert Clock().boot() == pytest.approx(real - 1000, abs=60)


@pytest.mark.linux
def test_a_boot_has_a_name():
    assert len(Clock().boot_id()) == 16
    assert Clock().boot_id() == host.boot_id() != bytes(16)
