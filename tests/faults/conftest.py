"""Places for many stores; and the bug that is to be planted, if any."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.faults import planted
from tests.faults.places import Places, places


@pytest.fixture
def stores() -> Iterator[Places]:
    with places() as lent:
        yield lent


@pytest.fixture(scope="session", autouse=True)
def _planted() -> Iterator[None]:
    name = os.environ.get(planted.VARIABLE)
    with pytest.MonkeyPatch.context() as patch:
        if name:
            planted.planted(name, patch)
        yield
