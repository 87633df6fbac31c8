"""``manage.py runworker``, called in process and as a process of its own."""

from __future__ import annotations

import os
import threading
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command, get_commands, load_command_class
from django.core.management.base import CommandError

from django_nobroker import registry, worker_command
from django_nobroker.compat import TaskResultStatus, task_backends
from django_nobroker.exceptions import StorageError
from django_nobroker.seam import WorkerOptions, WorkerStats
from tests import sample_tasks
from tests.sample_tasks import add, echo, fail, note
from tests.stores import (
    configure,
    configure_backend,
    disk,  # noqa: F401 - a fixture
    memory,  # noqa: F401 - a fixture
    store,  # noqa: F401 - a fixture
)

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 30.0


def run(*args):
    call_command("runworker", "--batch", *args)


def status_of(result):
    result.refresh()
    return result.status


@pytest.fixture
def asked(monkeypatch):
    """The options that an engine is asked to work with; no job runs."""
    found = []

    class Engine:
        def run_worker(self, execute, options, **_callbacks):
            found.append(options)
            return WorkerStats()

    monkeypatch.setattr(
        "django_nobroker.engines.engine_for", lambda options, alias: Engine()
    )
    return found


# --- in process -------------------------------------------------------------------


@pytest.mark.usefixtures("store")
def test_batch_runs_what_is_due_and_ends():
    results = [add.enqueue(number) for number in range(5)]
    run()

    assert {status_of(result) for result in results} == {TaskResultStatus.SUCCESSFUL}


@pytest.mark.usefixtures("store")
def test_batch_leaves_a_retry_that_is_not_due():
    result = fail.enqueue()
    run()

    assert status_of(result) is TaskResultStatus.READY
    assert result.attempts == 1


@pytest.mark.usefixtures("store")
def test_max_jobs_is_the_end():
    for number in range(5):
        add.enqueue(number)
    call_command("runworker", "--max-jobs", "2")

    (counts,) = task_backends["default"].engine.counts()
    assert (counts.ready, counts.done) == (3, 2)


@pytest.mark.usefixtures("store")
def test_queues_are_chosen_or_left_alone():
    emails, other = echo.enqueue(), add.enqueue(1)
    run("--queue", "emails", "--queue", "more")
    assert status_of(emails) is TaskResultStatus.SUCCESSFUL
    assert status_of(other) is TaskResultStatus.READY

    third = echo.enqueue()
    run("--exclude", "emails")
    assert status_of(other) is TaskResultStatus.SUCCESSFUL
    assert status_of(third) is TaskResultStatus.READY


@pytest.mark.usefixtures("store")
def test_several_jobs_run_at_a_time(monkeypatch):
    together = threading.Barrier(3)
    monkeypatch.setattr(
        sample_tasks, "trace", type("Trace", (), {"append": together.wait})
    )
    results = [note.enqueue(PATIENCE) for _ in range(3)]
    run("--concurrency", "3")

    assert {status_of(result) for result in results} == {TaskResultStatus.SUCCESSFUL}


@pytest.mark.usefixtures("memory")
def test_the_worker_is_named_in_results():
    given, made_up = add.enqueue(1), add.enqueue(2)
    run("--worker-id", "w7", "--max-jobs", "1")
    run()
    given.refresh()
    made_up.refresh()

    assert given.worker_ids == ["w7"]
    assert made_up.worker_ids[0].split("-")[-2] == str(os.getpid())


def test_the_options_reach_the_engine(asked, settings):
    configure(settings, VISIBILITY_TIMEOUT=12)
    call_command("runworker")
    call_command(
        "runworker",
        *("--queue", "a", "--queue", "b", "--exclude", "c", "--concurrency", "4"),
        *("--max-jobs", "9", "--idle-timeout", "1.5", "--grace", "2"),
        *("--poll-interval", "0.5", "--worker-id", "w"),
    )
    first, second = asked

    assert first == WorkerOptions(lease=12.0, worker_id=first.worker_id)
    assert second == WorkerOptions(
        queues=("a", "b"),
        exclude=("c",),
        concurrency=4,
        lease=12.0,
        grace=2.0,
        poll_interval=0.5,
        max_jobs=9,
        idle_timeout=1.5,
        worker_id="w",
    )


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--concurrency", "0"], "must be a whole number of at least 1, not '0'"),
        (["--concurrency", "two"], "must be a whole number of at least 1, not 'two'"),
        (["--max-jobs", "-1"], "must be a whole number of at least 1"),
        (["--idle-timeout", "nan"], "must be a number of seconds, at least 0"),
        (["--grace", "-1"], "must be a number of seconds, at least 0"),
        (["--poll-interval", "0"], "must be a number of seconds above 0"),
        (["--queue", ""], "1 to 200 characters"),
        (["--worker-id", "a\nb"], "control characters"),
        (["--nonsense"], "unrecognized arguments"),
        (["--processes", "2"], "unrecognized arguments"),
        (["--reload"], "unrecognized arguments"),
    ],
)
def test_a_wrong_option_is_told(args, text):
    with pytest.raises(CommandError, match=text):
        call_command("runworker", *args)


def test_an_unknown_backend_names_the_nearest():
    with pytest.raises(CommandError, match=r"'defualt'.*Did you mean default"):
        call_command("runworker", "--backend", "defualt")


def test_a_backend_of_somebody_else_is_refused(settings):
    module = type(add).__mro__[1].__module__.removesuffix(".base")
    configure_backend(
        settings, BACKEND=f"{module}.backends.dummy.DummyBackend", OPTIONS={}
    )

    with pytest.raises(CommandError, match="DummyBackend"):
        call_command("runworker", "--batch", skip_checks=True)


def test_a_queue_that_the_settings_do_not_name_is_refused(settings):
    configure_backend(settings, QUEUES=["default", "emails"])

    with pytest.raises(CommandError, match=r"'emials'.*Did you mean emails"):
        run("--queue", "emials")


@pytest.mark.usefixtures("memory")
def test_tasks_that_cannot_be_imported_keep_the_worker_from_starting(monkeypatch):
    """Or all their jobs would end as dead letters of unknown tasks."""

    def fail():
        raise SyntaxError("invalid syntax")

    result = add.enqueue(1)
    monkeypatch.setattr(registry, "discover", fail)
    with pytest.raises(CommandError, match="invalid syntax"):
        run()

    assert status_of(result) is TaskResultStatus.READY


def test_a_store_that_fails_is_one_line(monkeypatch):
    def fail(options, alias):
        raise StorageError("The disk is full.")

    monkeypatch.setattr("django_nobroker.engines.engine_for", fail)

    with pytest.raises(CommandError, match=r"^StorageError: The disk is full\.$"):
        run()


@pytest.mark.usefixtures("memory")
def test_the_end_is_told_with_figures(caplog):
    add.enqueue(1)
    fail.enqueue()
    with caplog.at_level("INFO", logger="django_nobroker"):
        run("--worker-id", "w7")

    assert (
        "Worker w7 stopped: 2 leased, 1 succeeded, 1 failed, 0 dead, 0 lost leases."
    ) in caplog.messages
    assert any("works on all queues of 'default'" in line for line in caplog.messages)
    assert any("succeeded" in line for line in caplog.messages)
    assert any("attempt 1 of 3, again in 8.0 s" in line for line in caplog.messages)


@pytest.mark.usefixtures("memory")
def test_the_lines_go_to_the_commands_output(monkeypatch):
    monkeypatch.setattr("django_nobroker.worker_log._would_print", lambda log: False)
    output = StringIO()
    add.enqueue(1)
    call_command("runworker", "--batch", stdout=output)

    assert "add succeeded." in output.getvalue()
    assert "1 leased" in output.getvalue()


def test_it_has_a_second_name_that_no_other_app_takes():
    commands = get_commands()
    first = load_command_class(commands["runworker"], "runworker")
    second = load_command_class(commands["nobroker_worker"], "nobroker_worker")

    assert commands["runworker"] == commands["nobroker_worker"] == "django_nobroker"
    assert type(first) is type(second)


@pytest.mark.usefixtures("memory")
def test_run_worker_returns_what_was_done():
    add.enqueue(1)
    stats = worker_command.run_worker("default", WorkerOptions(batch=True))

    assert stats == WorkerStats(leased=1, succeeded=1)
