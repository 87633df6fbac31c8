"""The log backend, as the two backends for tests that Django's own suite names."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

from django_nobroker import engines, seam
from django_nobroker.backends import LogBackend
from django_nobroker.compat import AnyResult
from django_nobroker.conf import Configuration
from django_nobroker.testing import ImmediateBackend

_numbers = count()


class Dummy(LogBackend):
    """What was enqueued can be looked at and cleared, and is never run."""

    # Of the class: Django makes a backend per thread and per asyncio task.
    store = f"dummy-{next(_numbers)}"

    @property
    def engine(self) -> seam.Engine:
        options = self.configuration.options
        directory = options.directory / self.store
        return engines.engine_for(
            replace(options, directory=directory), alias=self.alias
        )

    @property
    def results(self) -> list[AnyResult]:
        """Everything that was enqueued, oldest first, as it can be read now."""
        jobs = self.engine.jobs(newest_first=False).jobs
        return [self.get_result(job.id) for job in jobs]

    def clear(self) -> None:
        """Go on with another store, where nothing is."""
        type(self).store = f"dummy-{next(_numbers)}"


class Immediate(ImmediateBackend):
    """Runs at once, and never again: Django's own knows no retries."""

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.configuration = Configuration(alias, {"OPTIONS": {"MAX_ATTEMPTS": 1}})
