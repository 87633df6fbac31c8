"""Tells whether tests are running, and gives them stores of their own.

Test runners make a database for the tests and leave files alone, so without this
an ordinary test run would put its jobs into the developer's real queue.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from multiprocessing import util
from pathlib import Path

_lock = threading.Lock()  # guards _made; nothing else is taken while it is held
_made: dict[tuple[str, Path, str], Path] = {}


def tests_are_running() -> bool:
    """Say whether Django's ``setup_test_environment`` is in force.

    It asks only modules that are loaded already: a process that serves requests
    must not import the test framework to learn that it is not a test.
    """
    module = sys.modules.get("django.test.utils")
    return hasattr(getattr(module, "_TestState", None), "saved_data")


def process_name() -> str:
    """Return the name of this process among parallel ones, "" for the only one."""
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        return worker
    number = getattr(sys.modules.get("django.test.runner"), "_worker_id", 0)
    return str(number) if number else ""


def directory_for_tests(alias: str, directory: Path, given: Path | None) -> Path:
    """Return the store that tests use instead of ``directory``.

    That is ``given`` (with the process's name at its end in parallel runs), which
    stays, or a temporary one, which is removed when the process that made it ends.
    """
    process = process_name()
    if given is not None:
        return given.with_name(f"{given.name}-{process}") if process else given
    key = (alias, directory, process)
    with _lock:
        if key not in _made:
            _made[key] = _make()
        return _made[key]


def _make() -> Path:
    path = Path(tempfile.mkdtemp(prefix="nobroker-test-"))
    # Unlike atexit, this runs in the children of a parallel test run as well, and
    # never in a child that was merely forked from the process that made it.
    util.Finalize(None, shutil.rmtree, args=(path, True), exitpriority=0)
    return path


def _forget_lock() -> None:
    global _lock  # noqa: PLW0603 - a forked child must not inherit a held lock.
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)
