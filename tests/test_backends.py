"""Enqueueing and looking up, on every engine."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import async_to_sync
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.utils import timezone

from django_nobroker import engines, registry
from django_nobroker.backends import LogBackend, log_backends
from django_nobroker.compat import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from django_nobroker.exceptions import QueueFull, SerializationError
from django_nobroker.seam import State
from django_nobroker.testing import run_tasks
from tests import sample_tasks
from tests.sample_tasks import aadd, add, echo, fail_once, plain
from tests.stores import (
    configure,
    configure_backend,
    disk,  # noqa: F401 - a fixture
    memory,  # noqa: F401 - a fixture
    store,  # noqa: F401 - a fixture
)

pytestmark = pytest.mark.usefixtures("store")


def backend():
    return task_backends["default"]


def job(job_id):
    return backend().engine.job(job_id)


def jobs():
    return backend().engine.jobs(newest_first=False).jobs


@pytest.fixture
def enqueued():
    """The results that task_enqueued was sent with."""
    found = []

    def note(sender, task_result, **_kwargs):
        assert sender is LogBackend
        found.append(task_result)

    task_enqueued.connect(note)
    yield found
    task_enqueued.disconnect(note)


# --- what a backend is ----------------------------------------------------------


def test_it_can_do_all_that_the_framework_knows():
    assert backend().supports_defer
    assert backend().supports_async_task
    assert backend().supports_get_result
    assert backend().supports_priority


def test_any_queue_is_accepted_unless_the_settings_name_some(settings):
    add.using(queue_name="whatever").enqueue(1)
    configure_backend(settings, QUEUES=["default", "emails"])

    add.using(queue_name="emails").enqueue(1)
    with pytest.raises(InvalidTask, match="whatever"):
        add.using(queue_name="whatever")


def test_wrong_options_are_told_when_something_is_enqueued(settings):
    configure(settings, MAX_ATEMPTS=3)

    with pytest.raises(ImproperlyConfigured, match="Did you mean MAX_ATTEMPTS"):
        add.enqueue(1)


def test_nothing_is_opened_before_the_first_job(monkeypatch):
    opened = []
    monkeypatch.setattr(engines, "engine_for", lambda *a, **k: opened.append(a))
    made = LogBackend("default", {"OPTIONS": {}})
    made.validate_task(add)
    made.check()

    assert opened == []


def test_the_log_backends_of_the_settings_are_found(settings):
    settings.TASKS = {
        **settings.TASKS,
        "other": {"BACKEND": "django_nobroker.backends.LogBackend"},
    }

    assert list(log_backends()) == ["default", "other"]


# --- enqueue ------------------------------------------------------------------------


def test_a_result_tells_what_was_enqueued(enqueued):
    before = timezone.now() - timedelta(seconds=1)
    result = echo.enqueue(1, key=(2, 3))

    assert result.status is TaskResultStatus.READY
    assert (result.args, result.kwargs) == ([1], {"key": [2, 3]})
    assert before <= result.enqueued_at <= timezone.now() + timedelta(seconds=1)
    assert result.started_at is result.finished_at is result.last_attempted_at is None
    assert (result.errors, result.worker_ids, result.attempts) == ([], [], 0)
    assert (result.backend, result.task) == ("default", echo)
    assert enqueued == [result]


def test_the_engine_is_given_the_job_as_documented():
    result = echo.enqueue(1, key="x")
    detail = job(result.id)

    assert json.loads(detail.payload) == {
        "task": "tests.sample_tasks.echo",
        "args": [1],
        "kwargs": {"key": "x"},
    }
    view = detail.job
    assert (view.kind, view.queue) == ("tests.sample_tasks.echo", "emails")
    assert (view.priority, view.max_attempts) == (7, 2)


def test_max_attempts_come_from_the_queue_unless_the_task_has_its_own(settings):
    configure(
        settings, MAX_ATTEMPTS=9, QUEUES={"some": {"MAX_ATTEMPTS": 4}, "emails": {}}
    )

    assert job(add.enqueue(1).id).job.max_attempts == 9
    assert job(add.using(queue_name="some").enqueue(1).id).job.max_attempts == 4
    assert job(echo.enqueue().id).job.max_attempts == 2


def test_what_is_enqueued_is_what_is_read(settings):
    """In another process too: nothing of it is kept in the backend."""
    for task in (
        add,
        echo.using(priority=-100, queue_name="other"),
        add.using(run_after=timezone.now() + timedelta(days=1)),
        plain.using(run_after=datetime(2040, 5, 6, 7, 8, 9, tzinfo=UTC)),
        add.using(job_id="given"),
    ):
        result = task.enqueue(1)
        read = LogBackend("default", settings.TASKS["default"]).get_result(result.id)

        assert read == result
        assert read.task == result.task
        assert read.task.run_after == result.task.run_after


def test_a_whole_number_as_float_is_a_priority():
    result = add.using(priority=3.0).enqueue(1)

    assert job(result.id).job.priority == 3


def test_a_date_in_the_past_is_due_now():
    add.using(run_after=timezone.now() - timedelta(days=1)).enqueue(1)

    assert len(run_tasks()) == 1


def test_a_delay_counts_from_the_enqueue(monkeypatch):
    """Not from ``using``, which may have been called when the module was imported."""
    later = add.using(run_after=timedelta(minutes=5))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 1000)
    due = job(later.enqueue(1).id).job.available_at

    assert now + 1299 < due < now + 1301


def test_without_time_zones_times_are_naive(settings):
    settings.USE_TZ = False
    result = add.using(run_after=datetime(2040, 1, 1)).enqueue(1)
    read = backend().get_result(result.id)

    assert read == result
    assert read.enqueued_at.tzinfo is None
    assert read.task.run_after == datetime(2040, 1, 1)


@pytest.mark.parametrize("value", [b"x", {1}, float("nan"), {1: 2}, object()])
def test_what_cannot_make_the_round_trip_is_refused_before_anything_is_written(value):
    with pytest.raises(SerializationError, match=r"Unsupported type.*kwargs\['b'\]"):
        add.enqueue(1, b=value)
    assert jobs() == ()


def test_a_task_that_a_worker_could_not_find_is_refused(monkeypatch):
    monkeypatch.setattr(sample_tasks, "add", None)

    with pytest.raises(InvalidTask, match="would not find"):
        add.enqueue(1)
    assert jobs() == ()


def test_a_receiver_that_raises_does_not_keep_the_job_from_being_enqueued(caplog):
    def refuse(**_kwargs):
        raise RuntimeError("no")

    task_enqueued.connect(refuse)
    try:
        result = add.enqueue(1)
    finally:
        task_enqueued.disconnect(refuse)

    assert job(result.id).job.state is State.READY
    assert "refuse" in caplog.text


@pytest.mark.parametrize("store", ["memory"], indirect=True)
def test_a_full_queue_refuses(settings):
    configure(settings, MAX_PENDING=2)
    add.enqueue_many([((1,), {}), ((2,), {})])

    with pytest.raises(QueueFull):
        add.enqueue(3)
    assert len(jobs()) == 2


def test_the_framework_logs_what_is_enqueued(caplog):
    name = (
        "django.tasks"
        if "django.tasks" in str(type(add).__mro__[1])
        else ("django_tasks")
    )
    with caplog.at_level(logging.DEBUG, logger=name):
        result = add.enqueue(1)

    assert f"Task id={result.id} path=tests.sample_tasks.add enqueued" in caplog.text


# --- ids -------------------------------------------------------------------------------


def test_a_job_id_is_enqueued_once_however_often(enqueued):
    once = add.using(job_id="welcome-1")
    first = once.enqueue(1, b=2)
    again = once.enqueue(3, b=4)

    assert (first.id, again.id) == ("welcome-1", "welcome-1")
    assert (again.args, again.kwargs) == ([1], {"b": 2})
    assert again == first
    assert len(jobs()) == len(enqueued) == 1


def test_the_result_for_a_known_id_is_that_of_the_first_job():
    once = add.using(job_id="welcome-1")
    once.enqueue(1, b=2)
    run_tasks()

    assert once.enqueue(9).return_value == 3


def test_an_id_of_another_task_is_refused_not_dropped():
    add.using(job_id="mine").enqueue(1)

    with pytest.raises(InvalidTask, match=r"'mine' is that of a job of .*add"):
        plain.using(job_id="mine").enqueue(1)


# --- many --------------------------------------------------------------------------------


def test_many_are_enqueued_at_once_in_order(enqueued):
    results = add.enqueue_many([((n,), {"b": n}) for n in range(5)])

    assert [result.args for result in results] == [[n] for n in range(5)]
    assert [view.id for view in jobs()] == [result.id for result in results]
    assert enqueued == results


def test_of_many_none_is_enqueued_if_one_cannot_be():
    with pytest.raises(SerializationError):
        add.enqueue_many([((1,), {}), ((b"x",), {})])
    assert jobs() == ()


def test_many_may_be_none():
    assert add.enqueue_many([]) == []


# --- looking up ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["123", "", "x" * 500, "a\x00b", 5, None])
def test_an_unknown_id_is_told(name):
    with pytest.raises(TaskResultDoesNotExist):
        backend().get_result(name)
    with pytest.raises(TaskResultDoesNotExist):
        async_to_sync(backend().aget_result)(name)


def test_a_job_of_a_plain_queue_is_no_result():
    from django_nobroker.seam import NewJob

    backend().engine.enqueue_many([NewJob(queue="q", payload=b'"hi"', job_id="plain")])

    with pytest.raises(TaskResultDoesNotExist):
        backend().get_result("plain")


def test_a_result_of_another_task_is_a_mismatch():
    result = add.enqueue(1)

    with pytest.raises(TaskResultMismatch):
        plain.get_result(result.id)
    assert add.get_result(result.id) == result


def test_the_result_of_a_task_that_is_gone_says_so(monkeypatch):
    result = add.enqueue(1)
    monkeypatch.delattr(sample_tasks, "add")

    with pytest.raises(InvalidTask, match="no task named 'add'"):
        backend().get_result(result.id)


def test_a_queue_that_was_removed_leaves_results_readable(settings):
    result = add.using(queue_name="old").enqueue(1)
    configure_backend(settings, QUEUES=["default"])

    assert backend().get_result(result.id).task.queue_name == "old"


def test_refresh_shows_what_became_of_it():
    result = add.enqueue(1, b=2)
    with pytest.raises(ValueError, match="not finished"):
        result.return_value  # noqa: B018
    run_tasks()
    result.refresh()

    assert result.status is TaskResultStatus.SUCCESSFUL
    assert result.is_finished
    assert (result.return_value, result.attempts) == (3, 1)


def test_a_discarded_job_is_a_failed_one():
    result = add.enqueue(1)
    backend().engine.discard([result.id])
    result.refresh()

    assert result.status is TaskResultStatus.FAILED
    (error,) = result.errors
    assert error.exception_class.__name__ == "Discarded"
    assert result.finished_at is not None


def test_a_requeued_job_is_ready_again_with_its_history():
    result = fail_once.enqueue("value")
    run_tasks()
    backend().engine.requeue([result.id])
    result.refresh()

    assert result.status is TaskResultStatus.READY
    assert (len(result.errors), result.attempts) == (1, 1)
    assert result.finished_at is None


# --- async -----------------------------------------------------------------------------


def test_the_async_twins_do_the_same(enqueued):
    async def enqueue_and_read():
        result = await aadd.aenqueue(1, b=2)
        read = await aadd.aget_result(result.id)
        await result.arefresh()
        return result, read

    result, read = async_to_sync(enqueue_and_read)()

    assert read == result
    assert (result.args, result.kwargs) == ([1], {"b": 2})
    assert [one.id for one in enqueued] == [result.id]


def test_many_can_be_enqueued_concurrently():
    async def enqueue_all():
        return await asyncio.gather(*(add.aenqueue(n) for n in range(50)))

    results = asyncio.run(enqueue_all())

    assert len({result.id for result in results}) == len(jobs()) == 50


def test_those_that_wait_for_the_disk_wait_together(monkeypatch):
    engine = backend().engine
    together = threading.Barrier(2)
    enqueue_many = engine.enqueue_many

    def meet(jobs):
        together.wait(20)
        return enqueue_many(jobs)

    monkeypatch.setattr(engine, "enqueue_many", meet)

    async def enqueue_both():
        return await asyncio.gather(add.aenqueue(1), add.aenqueue(2))

    assert len(asyncio.run(enqueue_both())) == 2


def test_sync_enqueue_works_inside_an_event_loop():
    """It touches no database, which Django forbids there."""

    async def view():
        return add.enqueue(1)

    assert job(asyncio.run(view()).id).job.state is State.READY


def test_a_wrong_argument_is_told_by_the_async_twin_too():
    with pytest.raises(SerializationError, match=r"args\[0\]"):
        asyncio.run(add.aenqueue({1}))


# --- transactions ----------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_enqueue_does_not_wait_for_the_transaction():
    with transaction.atomic():
        result = add.enqueue(1)
        assert job(result.id).job.state is State.READY


@pytest.mark.django_db(transaction=True)
def test_on_commit_the_result_has_its_id_and_no_job_yet(enqueued):
    with transaction.atomic():
        result = add.enqueue_on_commit(1, b=2)
        assert result.enqueued_at is None
        assert result.status is TaskResultStatus.READY
        assert (result.args, result.kwargs) == ([1], {"b": 2})
        assert (jobs(), enqueued) == ((), [])
        with pytest.raises(TaskResultDoesNotExist):
            add.get_result(result.id)

    assert [view.id for view in jobs()] == [result.id]
    assert add.get_result(result.id).enqueued_at is not None
    assert [one.id for one in enqueued] == [result.id]


@pytest.mark.django_db(transaction=True)
def test_a_rollback_leaves_no_job():
    with transaction.atomic():
        add.enqueue_on_commit(1)
        transaction.set_rollback(True)

    assert jobs() == ()


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_on_commit_is_at_once():
    result = add.enqueue_on_commit(1)

    assert result.enqueued_at is not None
    assert job(result.id).job.state is State.READY


@pytest.mark.django_db(transaction=True)
def test_on_commit_arguments_are_checked_at_the_call():
    with transaction.atomic(), pytest.raises(SerializationError):
        add.enqueue_on_commit({1})


@pytest.mark.django_db(transaction=True)
def test_on_commit_a_given_id_is_kept_and_unique():
    with transaction.atomic():
        result = add.using(job_id="once").enqueue_on_commit(1)
        assert result.id == "once"
        add.using(job_id="once").enqueue_on_commit(2)

    (view,) = jobs()
    assert view.id == "once"


@pytest.mark.django_db(transaction=True)
def test_a_failure_to_write_after_the_commit_is_raised(monkeypatch):
    def fail(_jobs):
        raise QueueFull("full")

    monkeypatch.setattr(backend().engine, "enqueue_many", fail)

    def view():
        with transaction.atomic():
            add.enqueue_on_commit(1)

    with pytest.raises(QueueFull):
        view()


@pytest.mark.django_db(transaction=True)
def test_the_option_makes_every_enqueue_wait(settings):
    configure(settings, ENQUEUE_ON_COMMIT=True)
    with transaction.atomic():
        result = add.enqueue(1)
        many = add.enqueue_many([((2,), {}), ((3,), {})])
        assert jobs() == ()

    assert [view.id for view in jobs()] == [result.id, *(one.id for one in many)]


@pytest.mark.django_db(transaction=True)
def test_the_option_holds_for_the_async_twin(settings):
    configure(settings, ENQUEUE_ON_COMMIT="default")
    with transaction.atomic():
        result = async_to_sync(add.aenqueue)(1)
        assert jobs() == ()

    assert [view.id for view in jobs()] == [result.id]


def test_every_task_of_these_tests_can_be_reached():
    for name, value in vars(sample_tasks).items():
        if hasattr(value, "module_path"):
            assert registry.resolve(f"tests.sample_tasks.{name}") is value
