"""The command line, called in this process as a shell would call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from django_nobroker import Queue
from django_nobroker.cli.program import main

ROOT = Path(__file__).resolve().parents[2]


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self):
        return self.out.splitlines()

    @property
    def objects(self):
        return [json.loads(line) for line in self.lines]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty working directory; indexes go beside it."""
    (tmp_path / "index").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setenv("NOBROKER_INDEX_DIR", str(tmp_path / "index"))
    monkeypatch.delenv("NOBROKER_DIR", raising=False)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture
def directory(here):
    return here / "jobs"


@pytest.fixture
def nobroker(capsys):
    """Call the program and return what it said."""

    def call(*arguments):
        capsys.readouterr()
        code = main([str(one) for one in arguments])
        return Ran(code, *capsys.readouterr())

    return call


@pytest.fixture
def queue(directory):
    """The queue "default" of a new store."""
    with Queue(directory) as opened:
        yield opened


@pytest.fixture
def command():
    """The command line of a process of its own, for what needs one."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("DJANGO_SETTINGS_MODULE", None)

    def start(*arguments, **options):
        return subprocess.Popen(
            [sys.executable, "-m", "django_nobroker", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**environment, **options.pop("env", {})},
            **options,
        )

    return start


def snapshot(directory):
    """Return every file below a directory with its content and its times."""
    return {
        str(path.relative_to(directory)): (
            path.stat().st_mtime_ns,
            path.stat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [directory, *sorted(directory.rglob("*"))]
    }
