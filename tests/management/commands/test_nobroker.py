"""``manage.py nobroker``: the command line on the store of a backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from django_nobroker import Queue
from django_nobroker.cli import grammar
from django_nobroker.compat import TaskResultStatus, task_backends
from tests.sample_tasks import add, reject
from tests.stores import (
    configure,
    configure_backend,
    disk,  # noqa: F401 - a fixture
)

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.usefixtures("disk")
ADD = json.dumps({"task": add.module_path, "args": [1], "kwargs": {}})


@pytest.fixture
def nobroker():
    """Call the command and return what it said."""

    def call(*arguments):
        out = StringIO()
        call_command("nobroker", *map(str, arguments), stdout=out)
        return out.getvalue()

    return call


@pytest.fixture
def directory():
    """Where the store of this test is, or will be."""
    return task_backends["default"].configuration.options.directory


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def test_the_subcommands_are_those_of_the_console_script():
    done = subprocess.run(
        [sys.executable, "-m", "django", "nobroker", "--help"],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert all(f"    {name} " in done.stdout for name in grammar.COMMANDS)
    assert "--backend" in done.stdout
    assert "--dir" not in done.stdout


def test_it_works_on_the_store_of_the_backend(nobroker, directory):
    result = add.enqueue(1)

    assert objects(nobroker("--json", "stats"))[0]["ready"] == 1
    assert objects(nobroker("list", "--json"))[0]["id"] == result.id
    assert add.module_path in nobroker("show", result.id)
    assert directory.is_dir()


def test_a_store_that_is_missing_is_an_error_and_is_not_made(nobroker, directory):
    with pytest.raises(CommandError, match="There is no directory"):
        nobroker("stats")

    assert not directory.exists()


def test_a_task_can_be_enqueued_by_hand(nobroker):
    job_id = nobroker("enqueue", ADD).strip()
    call_command("runworker", "--batch")

    result = task_backends["default"].get_result(job_id)
    assert result.status is TaskResultStatus.SUCCESSFUL


@pytest.mark.parametrize("name", ["nowhere.at_all", "tests.sample_tasks.nothing"])
def test_the_call_of_an_unknown_task_is_refused(nobroker, directory, name):
    with pytest.raises(CommandError, match="No worker could run it"):
        nobroker("enqueue", json.dumps({"task": name, "args": [], "kwargs": {}}))

    assert not directory.exists()


def test_a_payload_that_is_no_call_is_remarked(nobroker, capsys):
    nobroker("enqueue", "hello")

    assert "This is not the call of a task" in capsys.readouterr().err
    assert objects(nobroker("--json", "list"))[0]["payload"] == "hello"


def test_the_options_of_the_backend_count(nobroker, settings, directory):
    configure(settings, MAX_ATTEMPTS=7, QUEUES={"emails": {"MAX_ATTEMPTS": 2}})
    nobroker("enqueue", ADD)
    nobroker("-q", "emails", "enqueue", ADD)

    found = objects(nobroker("--json", "list"))
    assert [one["max_attempts"] for one in found] == [7, 2]
    (log,) = directory.glob("*.log")
    assert log.stat().st_mode & 0o777 == 0o600


def test_compact_keeps_results_for_as_long_as_the_options_say(nobroker, settings):
    add.enqueue(1)
    call_command("runworker", "--batch")
    first = nobroker("compact")
    configure(settings, RESULT_TTL=0)
    time.sleep(0.01)
    second = nobroker("compact")

    assert "kept 1 jobs, dropped 0 completed" in first
    assert "kept 0 jobs, dropped 1 completed" in second


def test_health_names_the_command_of_django(nobroker):
    add.enqueue(1)
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("nobroker", "health", stdout=out)

    assert ended.value.code == 1
    assert "Start one: `manage.py runworker`." in out.getvalue()


def test_another_backend_is_named_in_the_commands_that_mend(settings, directory):
    tasks = {**settings.TASKS, "other": settings.TASKS["default"]}
    settings.TASKS = tasks
    with Queue(directory) as queue:
        queue.enqueue(1)
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("nobroker", "--backend", "other", "health", stdout=out)

    assert "`manage.py runworker --backend other`" in out.getvalue()


def test_dead_letters_come_back(nobroker):
    reject.enqueue()
    call_command("runworker", "--batch")
    (letter,) = objects(nobroker("dlq", "--json"))

    assert letter["state"] == "dead"
    assert nobroker("dlq", "--requeue", letter["id"]) == "Requeued 1 job.\n"


def test_purge_does_not_ask_where_nobody_can_answer(nobroker, monkeypatch):
    add.enqueue(1)
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    with pytest.raises(CommandError, match="add --yes"):
        nobroker("purge")

    assert nobroker("purge", "--yes") == "Purged 1 job.\n"


def test_errors_are_command_errors(nobroker, settings):
    with pytest.raises(
        CommandError, match=r"no backend 'defualt'.*Did you mean default"
    ):
        nobroker("--backend", "defualt", "stats")
    with pytest.raises(CommandError, match="unrecognized arguments: --nonsense"):
        nobroker("stats", "--nonsense")
    configure(settings, MAX_ATTEMPTS=0)
    with pytest.raises(CommandError, match="MAX_ATTEMPTS"):
        nobroker("stats")


def test_a_backend_without_a_log_is_refused(nobroker, settings):
    module = type(add).__mro__[1].__module__.removesuffix(".base")
    configure_backend(
        settings, BACKEND=f"{module}.backends.dummy.DummyBackend", OPTIONS={}
    )

    with pytest.raises(CommandError, match="DummyBackend"):
        nobroker("stats")


def test_without_a_subcommand_it_helps_and_ends_with_2(nobroker):
    with pytest.raises(SystemExit) as ended:
        nobroker()

    assert ended.value.code == 2


def test_the_exit_codes_are_those_of_the_process(disk, tmp_path):  # noqa: F811 - the fixture
    """No traceback for what is expected, with the name that Django gives errors."""
    settings = tmp_path / "process_settings.py"
    settings.write_text(
        "from tests.settings import *\n"
        f"TASKS['default']['OPTIONS'] = {{'DIRECTORY': {str(tmp_path / 'site')!r}}}\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
        "DJANGO_SETTINGS_MODULE": "process_settings",
    }

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "django", "nobroker", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    missing, made, sick, wrong = (
        run("stats"),
        run("enqueue", ADD),
        run("health"),
        run("stats", "--nonsense"),
    )
    assert [one.returncode for one in (missing, made, sick, wrong)] == [1, 0, 1, 2]
    assert missing.stderr.startswith("CommandError: There is no directory")
    assert missing.stderr.count("\n") == 1
    assert (made.stderr, sick.stderr) == ("", "")
