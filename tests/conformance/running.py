"""Runs the test modules of a foreign suite with Django's test runner."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Callable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any

from asgiref.sync import async_to_sync
from django.test.runner import DiscoverRunner
from django.utils.module_loading import import_string


def run(modules: Sequence[str], expected: Mapping[str, str]) -> int:
    """Return the exit status: 1 unless each test does what is expected of it.

    ``expected`` has the reason of each test that has to fail, by its dotted path.
    That one of them passes, or does not exist any more, is an error as well.
    """
    for path in expected:
        _expect_failure(path)
    runner = DiscoverRunner(interactive=False)
    runner.setup_test_environment()
    suite = unittest.defaultTestLoader.loadTestsFromNames(modules)
    databases = runner.setup_databases()
    try:
        result = runner.run_suite(suite)
    finally:
        runner.teardown_databases(databases)
        runner.teardown_test_environment()
    for test in result.unexpectedSuccesses:
        print(
            f"{test.id()} was expected to fail: {expected[test.id()]}", file=sys.stderr
        )
    skipped = {str(reason) for test, reason in result.skipped}
    for reason in sorted(skipped):
        print(f"Skipped: {reason}")
    return 0 if result.wasSuccessful() else 1


def _expect_failure(path: str) -> None:
    name, _, method = path.rpartition(".")
    case = import_string(name)
    test = getattr(case, method)
    if iscoroutinefunction(test):
        # Django turns it into a function of its own, which unittest's mark is not on.
        test = _as_function(test)
    setattr(case, method, unittest.expectedFailure(test))


def _as_function(test: Callable[..., Any]) -> Callable[..., Any]:
    def run(case: unittest.TestCase) -> None:
        async_to_sync(test)(case)

    return run
