"""The only reader of Django's settings; hands out checked :class:`Options`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from . import isolation
from .options import Fault, Options, OptionsError, QueueOptions, read_options

__all__ = [
    "Configuration",
    "Fault",
    "Options",
    "QueueOptions",
    "database_aliases",
    "served_directories",
    "uses_time_zones",
]


class Configuration:
    """What the settings say about one backend, read when it is first asked for.

    ``params`` is ``TASKS[alias]``. Making one never fails and opens nothing, since
    backends are made at import time, per thread and per asyncio task.
    """

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        self.alias = alias
        self._given = params.get("OPTIONS") or {}

    def faults(self) -> tuple[Fault, ...]:
        """Return everything that is wrong with the options, for system checks."""
        try:
            self._options  # noqa: B018 - asked for its faults only.
        except OptionsError as error:
            return error.faults
        return ()

    @property
    def options(self) -> Options:
        """The options in force now; in tests ``directory`` is that of the test.

        Raises:
            ImproperlyConfigured: if one of them is wrong.
        """
        try:
            options = self._options
        except OptionsError as error:
            raise ImproperlyConfigured(
                f"TASKS[{self.alias!r}]['OPTIONS'] is wrong: {error}"
            ) from error
        if not isolation.tests_are_running():
            return options
        return replace(
            options,
            directory=isolation.directory_for_tests(
                self.alias, options.directory, options.test
            ),
        )

    @functools.cached_property
    def _options(self) -> Options:
        if not isinstance(self._given, Mapping):
            raise OptionsError([Fault("OPTIONS", "must be a mapping.")])
        base = _base_directory()
        options = read_options(self._given, base and base / "jobs")
        index, test = options.index_directory, options.test
        return replace(
            options,
            directory=_absolute(options.directory, base),
            index_directory=index and _absolute(index, base),
            test=test and _absolute(test, base),
        )


def _base_directory() -> Path | None:
    base = getattr(settings, "BASE_DIR", None)
    return _absolute(Path(base), None) if base else None


@functools.cache
def _absolute(path: Path, base: Path | None) -> Path:
    """Make ``path`` absolute, once: a task may change the working directory.

    A relative one is taken from ``BASE_DIR``, so that the web server and the
    worker agree on it wherever each was started.
    """
    return Path.absolute(base / path if base else path)


def uses_time_zones() -> bool:
    """Say whether times are aware (``USE_TZ``)."""
    return bool(settings.USE_TZ)


def database_aliases() -> frozenset[str]:
    """Return the aliases of ``DATABASES``."""
    return frozenset(settings.DATABASES)


def served_directories() -> dict[str, Path]:
    """Return the directories whose files a web server hands out, by setting."""
    found = {
        name: value
        for name in ("MEDIA_ROOT", "STATIC_ROOT")
        if (value := getattr(settings, name, None))
    }
    for number, entry in enumerate(getattr(settings, "STATICFILES_DIRS", ())):
        # An entry may be a pair of a prefix and a directory.
        directory = entry[1] if isinstance(entry, list | tuple) else entry
        found[f"STATICFILES_DIRS[{number}]"] = directory
    return {name: Path(value).absolute() for name, value in found.items()}
