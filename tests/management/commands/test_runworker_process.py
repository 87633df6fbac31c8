"""``manage.py runworker`` as a process: signals, crashes, and the tests' process.

The jobs are enqueued by this process and run by another one, on one store.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from django_nobroker.compat import TaskResultStatus, task_backends
from django_nobroker.seam import State
from tests.sample_tasks import add, die, wait_for
from tests.stores import disk  # noqa: F401 - a fixture

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 60.0

SETTINGS = """
from tests.settings import *

DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": {db!r}}}}}
TASKS = {{
    "default": {{
        "BACKEND": "django_nobroker.backends.LogBackend",
        "OPTIONS": {{
            "DIRECTORY": {directory!r},
            "FILE_MODE": 0o600,
            "VISIBILITY_TIMEOUT": 1.0,
            "BACKOFF": {{"base": 0}},
        }},
    }}
}}
"""

pytestmark = pytest.mark.usefixtures("disk")


@pytest.fixture
def site(tmp_path, request):
    """A settings module that uses the store of the test outside of tests."""
    store = request.getfixturevalue("disk")
    text = SETTINGS.format(db=str(tmp_path / "db.sqlite3"), directory=str(store))
    (tmp_path / "site_settings.py").write_text(text)
    return tmp_path


@contextmanager
def worker(site, *args):
    command = [sys.executable, "-m", "django", "runworker", "--poll-interval", "0.1"]
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "site_settings",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)]),
    }
    process = subprocess.Popen(
        [*command, *args],
        cwd=site,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def end_of(process):
    """Wait for the process; return its status and what it printed."""
    output, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, output


def wait_until(process, condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def job(result):
    return task_backends["default"].engine.job(result.id)


@pytest.fixture
def waiting(tmp_path):
    """A job that says when it has started, and waits to be let go."""
    started, go = tmp_path / "started", tmp_path / "go"
    return wait_for.enqueue(str(started), str(go)), started, go


def test_another_process_runs_what_this_one_enqueued(site):
    result = add.enqueue(1, b=2)
    with worker(site, "--batch", "--worker-id", "w7") as process:
        status, output = end_of(process)
    result.refresh()

    assert (status, result.return_value) == (0, 3)
    assert result.worker_ids == ["w7"]
    assert "Worker w7 stopped: 1 leased, 1 succeeded" in output
    assert not (ROOT / "tests" / "jobs").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_after_a_signal_it_finishes_what_runs_and_nothing_more(site, waiting, number):
    result, started, go = waiting
    after = add.enqueue(1)
    with worker(site) as process:
        wait_until(process, started.exists)
        process.send_signal(number)
        line = ""
        while "finishing what runs" not in line:
            line = process.stdout.readline()
            assert line, "it ended without a word"
        go.touch()
        status, _ = end_of(process)
    result.refresh()
    after.refresh()

    assert status == 0
    assert result.return_value == "went"
    assert after.status is TaskResultStatus.READY


def test_what_outlasts_the_grace_is_given_back(site, waiting):
    result, started, _ = waiting
    with worker(site, "--grace", "0.1") as process:
        wait_until(process, started.exists)
        process.send_signal(signal.SIGTERM)
        status, _ = end_of(process)
    detail = job(result)

    assert status == 0
    assert (detail.job.state, detail.job.attempts) == (State.READY, 0)
    result.refresh()
    assert (result.attempts, result.errors) == (0, [])


def test_a_second_signal_ends_it_at_once_with_status_one(site, waiting):
    _, started, _ = waiting
    with worker(site) as process:
        wait_until(process, started.exists)
        process.send_signal(signal.SIGTERM)
        line = ""
        while "finishing what runs" not in line:
            line = process.stdout.readline()
            assert line, "it ended without a word"
        process.send_signal(signal.SIGTERM)
        status, _ = end_of(process)

    assert status == 1


def test_a_killed_workers_job_is_run_by_another(site, waiting):
    result, started, go = waiting
    with worker(site) as process:
        wait_until(process, started.exists)
        process.kill()
        process.wait()
    started.unlink()
    with worker(site, "--max-jobs", "1") as process:
        wait_until(process, started.exists)
        go.touch()
        status, _ = end_of(process)
    result.refresh()

    assert status == 0
    assert result.return_value == "went"
    assert result.attempts == 2
    (error,) = result.errors
    assert "worker lost" in error.traceback
    assert error.exception_class.__name__ == "WorkerLost"


def test_a_job_that_kills_its_worker_is_a_dead_letter_in_the_end(site):
    """Its attempts are counted when they begin, so it cannot go on for ever."""
    result = die.enqueue()
    for _ in range(2):
        with worker(site, "--max-jobs", "1") as process:
            status, _ = end_of(process)
            assert status == -signal.SIGKILL
    after = add.enqueue(1)
    with worker(site) as process:
        wait_until(process, lambda: job(result).job.state is State.DEAD)
        process.send_signal(signal.SIGTERM)
        status, _ = end_of(process)
    after.refresh()

    assert status == 0
    assert after.status is TaskResultStatus.SUCCESSFUL
    detail = job(result)
    assert [attempt.outcome for attempt in detail.history] == ["lost", "lost"]


def test_settings_that_are_wrong_are_told_without_a_traceback(site):
    settings = site / "site_settings.py"
    settings.write_text(settings.read_text() + 'TASKS["default"]["OPTIONS"]["X"] = 1\n')
    with worker(site) as process:
        status, output = end_of(process)

    assert status == 1
    assert "X is not an option" in output
    assert "Traceback" not in output
