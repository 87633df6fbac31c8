"""Running attempts of Django jobs, on every engine, in a worker's threads."""

from __future__ import annotations

import json
import logging
import threading
from contextlib import ExitStack, contextmanager

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.utils import timezone, translation
from msgspec.structs import replace

from django_nobroker import seam
from django_nobroker.backends import LogBackend
from django_nobroker.compat import (
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from django_nobroker.execution import TaskExecution
from django_nobroker.seam import Attempt, NewJob, State, WorkerOptions
from django_nobroker.signals import lease_lost, task_dead, task_retried
from tests import sample_tasks
from tests.sample_tasks import (
    RAISED,
    aadd,
    acount_users,
    add,
    attempts,
    break_transaction,
    create_user,
    echo,
    extend,
    fail,
    fail_once,
    hang,
    leave_open,
    note,
    note_surroundings,
    picky,
    plain,
    reject,
    retry,
    unserialisable,
    untidy,
    word,
)
from tests.stores import (
    configure,
    disk,  # noqa: F401 - a fixture
    memory,  # noqa: F401 - a fixture
    store,  # noqa: F401 - a fixture
)

pytestmark = pytest.mark.usefixtures("store", "trace")

ALL = {
    "enqueued": task_enqueued,
    "started": task_started,
    "finished": task_finished,
    "retried": task_retried,
    "dead": task_dead,
    "lost": lease_lost,
}


@pytest.fixture
def trace():
    sample_tasks.trace.clear()
    return sample_tasks.trace


def backend():
    return task_backends["default"]


def work(**options):
    """Run a worker until nothing is due."""
    execution = TaskExecution(backend())
    given = {"batch": True, "worker_id": "w1", "poll_interval": 0.05, **options}
    try:
        return backend().engine.run_worker(
            execution.execute,
            WorkerOptions(**given),
            stop=threading.Event(),
            on_start=execution.started,
            on_settled=execution.settled,
        )
    finally:
        execution.close()


def result_of(task, *args, **kwargs):
    result = task.enqueue(*args, **kwargs)
    work()
    result.refresh()
    return result


@contextmanager
def receiving(**receivers):
    with ExitStack() as stack:
        for name, receiver in receivers.items():
            ALL[name].connect(receiver, weak=False)
            stack.callback(ALL[name].disconnect, receiver)
        yield


@contextmanager
def listening():
    """Collect (name, status, facts) of all signals but task_enqueued."""
    heard = []

    def listener(name):
        def listen(sender, task_result, signal, **facts):
            assert sender is LogBackend
            heard.append((name, task_result.status, facts))

        return listen

    names = [name for name in ALL if name != "enqueued"]
    with receiving(**{name: listener(name) for name in names}):
        yield heard


# --- success ----------------------------------------------------------------------


def test_a_task_that_returns_is_successful():
    before = timezone.now()
    result = result_of(add, 1, b=2)

    assert result.status is TaskResultStatus.SUCCESSFUL
    assert result.return_value == 3
    assert (result.worker_ids, result.errors) == (["w1"], [])
    assert before < result.started_at <= result.finished_at < timezone.now()
    assert result.last_attempted_at == result.started_at


def test_an_async_task_is_successful_too():
    assert result_of(aadd, 1, b=2).return_value == 3


def test_a_task_of_the_frameworks_decorator_runs():
    assert result_of(plain, [1]).return_value == [1]


def test_options_and_arguments_of_one_name_do_not_meet():
    given = {"timeout": 1, "priority": 2, "queue_name": "x", "task": 4, "backend": 5}
    result = echo.enqueue(**given)
    work()

    assert echo.get_result(result.id).return_value == {"args": [], "kwargs": given}


def test_a_task_may_return_nothing():
    assert result_of(note, "x").return_value is None


# --- failure ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RAISED)
def test_whatever_is_raised_is_a_failed_attempt_and_the_worker_lives(kind):
    result = fail_once.enqueue(kind)
    after = add.enqueue(1)
    work()
    result.refresh()
    after.refresh()

    assert result.status is TaskResultStatus.FAILED
    (error,) = result.errors
    assert error.exception_class is type(RAISED[kind]())
    assert "in fail_once" in error.traceback
    assert "invocation.py" not in error.traceback
    assert after.status is TaskResultStatus.SUCCESSFUL


def test_a_failed_attempt_waits_for_its_retry():
    result = result_of(fail, "oops")

    assert result.status is TaskResultStatus.READY
    assert (result.attempts, len(result.errors)) == (1, 1)
    assert result.finished_at is None
    view = backend().engine.job(result.id).job
    assert 7 < view.available_at - view.last_attempted_at < 9


def test_every_attempt_has_its_entry(settings, trace):
    configure(settings, BACKOFF={"base": 0})
    result = result_of(attempts, 3)

    assert result.status is TaskResultStatus.SUCCESSFUL
    assert result.return_value == 3
    assert result.worker_ids == ["w1", "w1", "w1"]
    assert [error.traceback.splitlines()[-1] for error in result.errors] == [
        "ValueError: attempt 1",
        "ValueError: attempt 2",
    ]
    assert trace == [(1, ["w1"]), (2, ["w1"] * 2), (3, ["w1"] * 3)]
    assert result.started_at < result.last_attempted_at <= result.finished_at


def test_the_last_attempt_leads_to_the_dead_letters(settings):
    configure(settings, BACKOFF={"base": 0}, MAX_ATTEMPTS=2)
    result = result_of(attempts, 9)

    assert result.status is TaskResultStatus.FAILED
    assert (result.attempts, len(result.errors)) == (2, 2)
    view = backend().engine.job(result.id).job
    assert (view.state, view.reason) == (State.DEAD, "attempts")
    with pytest.raises(ValueError, match="Task failed"):
        result.return_value  # noqa: B018


def test_retry_decides_about_its_delay():
    result = result_of(retry, 600)

    assert result.status is TaskResultStatus.READY
    (error,) = result.errors
    assert error.exception_class.__name__ == "Retry"
    view = backend().engine.job(result.id).job
    assert 590 < view.available_at - view.last_attempted_at < 610


def test_reject_is_final():
    result = result_of(reject)

    assert result.status is TaskResultStatus.FAILED
    assert backend().engine.job(result.id).job.reason == "rejected"


def test_an_exception_that_is_not_retried_is_final():
    result = result_of(picky, "missing")

    assert result.status is TaskResultStatus.FAILED
    assert result.attempts == 1
    assert backend().engine.job(result.id).job.reason == "not retried"


def test_an_async_task_that_takes_too_long_fails():
    result = result_of(hang)
    (error,) = result.errors

    assert error.exception_class_path == "django_nobroker.control.TaskTimeout"
    assert "concurrent" not in error.traceback


def test_a_timeout_comes_before_what_the_task_raises_when_it_is_cancelled():
    """Its own errors would have led to the dead letters."""
    result = result_of(untidy)
    (error,) = result.errors

    assert result.status is TaskResultStatus.READY
    assert error.exception_class_path == "django_nobroker.control.TaskTimeout"
    assert "while tidying up" in error.traceback


def test_a_result_that_cannot_make_the_round_trip_is_a_failure():
    result = result_of(unserialisable)

    assert result.status is TaskResultStatus.FAILED
    (error,) = result.errors
    assert error.exception_class is TypeError
    assert "Unsupported type" in error.traceback
    assert "result['when']" in error.traceback
    assert backend().engine.job(result.id).job.reason == "wrong result"


def test_arguments_that_the_code_does_not_take_are_not_retried():
    result = result_of(add, 1, 2, 3)

    assert result.status is TaskResultStatus.FAILED
    assert (result.attempts, result.errors[0].exception_class) == (1, TypeError)
    assert backend().engine.job(result.id).job.reason == "wrong arguments"


def test_a_type_error_of_the_task_itself_is_retried():
    assert result_of(add, 1, "x").status is TaskResultStatus.READY


# --- jobs that cannot run ---------------------------------------------------------------


def enqueue_raw(payload, kind="app.gone"):
    (answer,) = backend().engine.enqueue_many(
        [NewJob(queue="default", payload=payload, kind=kind)]
    )
    return answer.id


def dead_view(job_id):
    view = backend().engine.job(job_id).job
    assert view.state is State.DEAD
    assert view.attempts == 1
    return view


def test_an_unknown_task_is_a_dead_letter_with_its_reason(caplog):
    job_id = enqueue_raw(b'{"task":"tests.sample_tasks.gone","args":[],"kwargs":{}}')
    with listening() as heard:
        work()
    view = dead_view(job_id)

    assert view.reason == "unknown task"
    assert "no task named 'gone'" in view.error.message
    assert heard == []
    assert "is dead (unknown task)" in caplog.text


def test_a_path_that_names_no_task_is_never_run(trace):
    path = "tests.sample_tasks.not_a_task"
    job_id = enqueue_raw(json.dumps({"task": path, "args": [], "kwargs": {}}).encode())
    work()

    assert dead_view(job_id).reason == "unknown task"
    assert trace == []


def test_a_payload_of_somebody_else_is_a_dead_letter():
    job_id = enqueue_raw(b'"hello"', kind=None)
    work()

    assert dead_view(job_id).reason == "wrong payload"


def test_a_module_that_cannot_be_imported_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "half_deployed.py").write_text("raise SystemExit('not yet')")
    payload = {"task": "half_deployed.f", "args": [], "kwargs": {}}
    job_id = enqueue_raw(json.dumps(payload).encode())
    work()
    view = backend().engine.job(job_id).job

    assert (view.state, view.error.message) == (State.READY, "not yet")


# --- signals ---------------------------------------------------------------------------


def test_the_signals_of_a_success():
    with listening() as heard:
        result_of(add, 1)

    assert heard == [
        ("started", TaskResultStatus.RUNNING, {}),
        ("finished", TaskResultStatus.SUCCESSFUL, {}),
    ]


def test_the_signals_of_a_retry():
    with listening() as heard:
        result_of(fail)
    started, (name, status, facts) = heard

    assert started[0] == "started"
    assert (name, status, facts["delay"]) == ("retried", TaskResultStatus.READY, 8.0)
    assert facts["error"].exception_class is ValueError


def test_a_dead_letter_is_an_error_in_the_log_of_the_program(caplog):
    with caplog.at_level(logging.WARNING, logger="django_nobroker"):
        result = result_of(fail_once, "value")

    (told,) = (one for one in caplog.records if one.name == "django_nobroker.worker")
    assert told.levelname == "ERROR"
    assert told.getMessage() == (
        f"Job {result.id}: tests.sample_tasks.fail_once is dead (attempts) "
        "after attempt 1: builtins.ValueError: v"
    )


def test_the_signals_of_a_dead_letter():
    with listening() as heard:
        result_of(fail_once, "value")
        result_of(reject)

    assert [(name, facts) for name, _, facts in heard if name != "started"] == [
        ("finished", {}),
        ("dead", {"reason": "attempts"}),
        ("finished", {}),
        ("dead", {"reason": "rejected"}),
    ]


def test_a_finished_result_carries_what_get_result_gives():
    found = []
    with receiving(finished=lambda task_result, **_: found.append(task_result)):
        good = result_of(add, 1)
        bad = result_of(fail_once, "value")

    assert found[0].return_value == good.return_value
    assert found[1].errors == bad.errors
    for sent, read in zip(found, (good, bad), strict=True):
        assert (sent.id, sent.status) == (read.id, read.status)
        assert (sent.args, sent.worker_ids) == (read.args, read.worker_ids)
        assert sent.task == read.task
        assert sent.enqueued_at == read.enqueued_at
        assert abs((sent.finished_at - read.finished_at).total_seconds()) < 5


def test_a_finished_job_can_be_read_by_the_receiver():
    found = []

    def look(task_result, **_facts):
        found.append(backend().get_result(task_result.id).status)

    with receiving(finished=look):
        result_of(add, 1)

    assert found == [TaskResultStatus.SUCCESSFUL]


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("name", ["started", "finished"])
def test_a_receiver_that_raises_changes_nothing(name, error, caplog):
    def refuse(**_facts):
        raise error("no")

    with receiving(**{name: refuse}):
        first = result_of(add, 1)
    second = result_of(add, 2)

    assert first.status is second.status is TaskResultStatus.SUCCESSFUL
    assert error.__name__ in caplog.text or "refuse" in caplog.text


def test_error_trackers_see_the_exception(caplog):
    """Django's own receiver logs ``sys.exc_info()``, and so do theirs."""
    with caplog.at_level(logging.ERROR):
        result = result_of(fail_once, "value")
    records = [
        record
        for record in caplog.records
        if record.name.startswith("django") and result.id in record.getMessage()
    ]

    assert any(
        record.exc_info and record.exc_info[0] is ValueError for record in records
    )


def test_an_exception_of_megabytes_is_not_logged(caplog):
    result_of(fail_once, "huge")

    assert len(caplog.text) < 200_000


# --- context ---------------------------------------------------------------------------


def test_a_lease_can_be_extended():
    assert result_of(extend, 120).status is TaskResultStatus.SUCCESSFUL


@pytest.mark.parametrize("seconds", [0, -1, "5", None, True])
def test_a_lease_cannot_be_extended_by_nonsense(seconds):
    result = result_of(extend, seconds)

    assert result.errors[0].exception_class in {ValueError, TypeError}


def test_a_requeued_job_starts_with_attempt_one_and_keeps_its_errors(settings, trace):
    configure(settings, BACKOFF={"base": 0}, MAX_ATTEMPTS=2)
    result = result_of(attempts, 3)
    backend().engine.requeue([result.id])
    work()
    result.refresh()

    assert [number for number, _ in trace] == [1, 2, 1, 2]
    assert (len(result.errors), result.attempts) == (4, 4)


# --- what a job leaves behind ------------------------------------------------------------


def test_language_time_zone_and_context_do_not_leak(trace, settings):
    translation.activate("fr")
    token = word.set("the caller's")
    try:
        note_surroundings.enqueue()
        note_surroundings.enqueue()
        work()
    finally:
        translation.deactivate()
        word.reset(token)

    fresh = (settings.LANGUAGE_CODE, settings.TIME_ZONE, "unset")
    assert trace == [fresh, fresh]


def test_a_context_variable_of_a_receiver_reaches_the_task(trace):
    with receiving(started=lambda **_: word.set("from the receiver")):
        note_surroundings.enqueue()
        work()

    assert trace[0][2] == "from the receiver"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", ["atomic", "autocommit"])
def test_a_transaction_that_a_task_left_open_is_rolled_back(how):
    result = result_of(leave_open, "ada", how)
    after = result_of(create_user, "bob")

    assert result.status is after.status is TaskResultStatus.SUCCESSFUL
    assert [user.username for user in User.objects.all()] == ["bob"]


@pytest.mark.django_db(transaction=True)
def test_a_broken_transaction_harms_no_other_job():
    result = break_transaction.enqueue()
    after = create_user.enqueue("bob")
    work()
    result.refresh()
    after.refresh()

    assert result.errors[0].exception_class is IntegrityError
    assert after.status is TaskResultStatus.SUCCESSFUL
    assert [user.username for user in User.objects.all()] == ["bob"]


@pytest.mark.django_db(transaction=True)
def test_an_async_task_uses_the_orm():
    User.objects.create(username="ada")

    assert result_of(acount_users).return_value == 1


def test_an_attempt_whose_start_was_not_told_runs_all_the_same():
    result = add.enqueue(1, b=2)
    detail = backend().engine.job(result.id)
    execution = TaskExecution(backend())
    attempt = Attempt(
        id=result.id,
        queue="default",
        kind=detail.job.kind,
        payload=detail.payload,
        number=1,
        max_attempts=5,
        priority=0,
        enqueued_at=0.0,
        worker="w",
        extend=lambda seconds: None,
    )

    assert execution.execute(attempt) == seam.Done(result=b"3")


def test_an_outcome_that_was_dropped_is_told(caplog):
    """Another worker has the job: neither finished nor retried."""
    result = add.enqueue(1)
    engine = backend().engine
    execution = TaskExecution(backend())
    with listening() as heard:
        engine.run_worker(
            execution.execute,
            WorkerOptions(batch=True, worker_id="w1"),
            stop=threading.Event(),
            on_start=execution.started,
            on_settled=lambda settled: execution.settled(replace(settled, state=None)),
        )

    assert [name for name, _, _ in heard] == ["started", "lost"]
    assert heard[1][1] is TaskResultStatus.RUNNING
    assert f"Job {result.id}" in caplog.text
    assert "lost its lease" in caplog.text


def test_a_job_that_never_ran_is_logged_and_harms_nothing(caplog):
    """The engine may find that it cannot read a payload, and says how that ended."""
    attempt = Attempt(
        id="damaged",
        queue="default",
        kind="app.f",
        payload=b"",
        number=1,
        max_attempts=5,
        priority=0,
        enqueued_at=0.0,
        worker="w",
        extend=lambda seconds: None,
    )
    error = seam.Error(type="Damaged", message="its record is damaged")
    outcome = seam.Dead(error=error, reason="unreadable")
    TaskExecution(backend()).settled(
        seam.Settled(attempt=attempt, outcome=outcome, state=State.DEAD)
    )

    assert "Job damaged: app.f is dead (unreadable)" in caplog.text
