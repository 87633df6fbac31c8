"""Fixtures that give a test an empty store, in memory or on disk."""

from __future__ import annotations

from copy import deepcopy

import pytest
from django.conf import settings as django_settings

from django_nobroker import engines
from django_nobroker.compat import task_backends
from tests.memory_engine import MemoryEngine


def configure(settings, **options):
    """Set options of the default backend for the rest of the test."""
    tasks = deepcopy(django_settings.TASKS)
    tasks["default"].setdefault("OPTIONS", {}).update(options)
    settings.TASKS = tasks


def configure_backend(settings, **values):
    """Set keys of ``TASKS["default"]`` for the rest of the test."""
    tasks = deepcopy(django_settings.TASKS)
    tasks["default"].update(values)
    settings.TASKS = tasks


@pytest.fixture
def memory(monkeypatch):
    """Keep the jobs of every backend in memory; return the engine."""
    made = {}

    def engine_for(options, *, alias):
        engine = made.setdefault(alias, MemoryEngine(options))
        engine.options = options
        return engine

    monkeypatch.setattr(engines, "engine_for", engine_for)
    return task_backends["default"].engine


@pytest.fixture
def disk(tmp_path, settings):
    """Keep the jobs of the default backend in a directory of this test."""
    directory = tmp_path / "jobs"
    configure(settings, TEST={"DIRECTORY": directory}, FILE_MODE=0o600)
    yield directory
    for engine in engines.opened(directory):
        engine.close()


@pytest.fixture(params=["memory", "disk"])
def store(request):
    """Run the test on both engines."""
    return request.getfixturevalue(request.param)
