"""The random walk of two handles, for long."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.engine.test_model import TwoHandles

TestManyWalks = pytest.mark.campaign(TwoHandles.TestCase)
TestManyWalks.settings = settings(
    max_examples=600,
    stateful_step_count=60,
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
