"""Stores of their own for tests, and for each process of a parallel run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.test import runner

from django_nobroker import isolation

ROOT = Path(__file__).resolve().parent.parent
SRV = Path("/srv/jobs")


@pytest.fixture(autouse=True)
def _not_parallel(monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


def test_this_is_a_test():
    assert isolation.tests_are_running()


def test_a_process_that_serves_is_not_one_and_imports_no_test_framework():
    code = """
import sys
from django_nobroker import isolation
print(isolation.tests_are_running(), "django.test" in sys.modules)
import django.test.utils
print(isolation.tests_are_running())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert done.stdout.split() == ["False", "False", "False"]


def test_a_given_directory_is_used_as_it_is():
    given = Path("/srv/test-jobs")

    assert isolation.directory_for_tests("default", SRV, given) == given


@pytest.mark.parametrize("number", [1, 2])
def test_parallel_processes_of_djangos_runner_get_their_own(monkeypatch, number):
    monkeypatch.setattr(runner, "_worker_id", number)
    given = Path("/srv/test-jobs")

    found = isolation.directory_for_tests("default", SRV, given)
    assert found == Path(f"/srv/test-jobs-{number}")


def test_parallel_processes_of_pytest_get_their_own(monkeypatch):
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw3")
    given = Path("/srv/test-jobs")

    found = isolation.directory_for_tests("default", SRV, given)
    assert found == Path("/srv/test-jobs-gw3")


def test_temporary_stores_differ_by_alias_and_process(monkeypatch):
    first = isolation.directory_for_tests("default", SRV, None)
    other = isolation.directory_for_tests("other", SRV, None)
    monkeypatch.setattr(runner, "_worker_id", 7)
    parallel = isolation.directory_for_tests("default", SRV, None)

    assert len({first, other, parallel}) == 3
    assert all(path.is_dir() for path in (first, other, parallel))


@pytest.mark.parametrize("way", ["plain", "pool"])
def test_a_temporary_store_is_gone_after_the_process(way):
    """At the end of the process that made it, and not of a child that it forked."""
    make = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from django_nobroker import isolation\n"
        "def make(name='default'):\n"
        "    path = isolation.directory_for_tests(name, Path('/srv'), None)\n"
        "    (path / 'log').write_text('x')\n"
        "    print(path, path.is_dir(), flush=True)\n"
    )
    ways = {
        "plain": (
            "make()\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    make()\n"
            "    sys.exit()\n"
            "os.waitpid(child, 0)\n"
            "make()\n"
        ),
        "pool": (
            "import multiprocessing\n"
            "if __name__ == '__main__':\n"
            "    pool = multiprocessing.get_context('fork').Pool(1)\n"
            "    pool.map(make, ['a'])\n"
            "    pool.close()\n"
            "    pool.join()\n"
        ),
    }
    done = subprocess.run(
        [sys.executable, "-c", make + ways[way]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    lines = [line.split() for line in done.stdout.splitlines()]

    assert len(lines) == (3 if way == "plain" else 1)
    assert {existed for _, existed in lines} == {"True"}
    (path,) = {path for path, _ in lines}
    assert not Path(path).exists()
