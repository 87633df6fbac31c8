"""Places for many stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.places import Places, places


@pytest.fixture
def stores() -> Iterator[Places]:
    with places() as lent:
        yield lent
