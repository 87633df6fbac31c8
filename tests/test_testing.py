"""``run_tasks``: the worker, in the test's own thread."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.utils import timezone, translation

from django_nobroker.compat import TaskResultStatus, task_backends
from django_nobroker.seam import State
from django_nobroker.testing import run_tasks
from tests import sample_tasks
from tests.sample_tasks import (
    acount_users,
    add,
    attempts,
    chain,
    create_user,
    echo,
    fail,
    fail_once,
    interrupt,
    leave_open,
    note_surroundings,
    thread,
)
from tests.stores import (
    configure,
    configure_backend,
    disk,  # noqa: F401 - a fixture
    memory,  # noqa: F401 - a fixture
    store,  # noqa: F401 - a fixture
)

pytestmark = pytest.mark.usefixtures("store")


@pytest.fixture
def trace():
    sample_tasks.trace.clear()
    return sample_tasks.trace


def test_what_is_due_is_run_and_returned_in_order():
    enqueued = [add.enqueue(number, b=1) for number in range(3)]
    found = run_tasks()

    assert [one.id for one in found] == [one.id for one in enqueued]
    assert [one.return_value for one in found] == [1, 2, 3]
    assert run_tasks() == []


def test_results_are_as_they_can_be_read():
    add.enqueue(1)
    fail_once.enqueue("value")
    for result in run_tasks():
        read = task_backends["default"].get_result(result.id)
        assert (result.status, result.errors) == (read.status, read.errors)
        assert result.worker_ids == read.worker_ids == ["run_tasks"]


def test_failures_are_recorded_and_not_raised():
    fail.enqueue("oops")
    (result,) = run_tasks()

    assert result.status is TaskResultStatus.READY
    assert result.errors[0].exception_class is ValueError


def test_a_retry_that_is_due_is_run_and_the_job_is_returned_once(settings):
    configure(settings, BACKOFF={"base": 0})
    attempts.enqueue(3)
    (result,) = run_tasks()

    assert result.status is TaskResultStatus.SUCCESSFUL
    assert (result.attempts, len(result.errors)) == (3, 2)


def test_what_tasks_enqueue_is_run_as_well():
    chain.enqueue(3)

    assert [result.return_value for result in run_tasks()] == [3, 2, 1, 0]


def test_queues_can_be_chosen():
    add.enqueue(1)
    emails = echo.enqueue()

    assert [result.id for result in run_tasks(queues=["emails"])] == [emails.id]
    assert len(run_tasks()) == 1


def test_there_may_be_a_limit():
    for number in range(3):
        add.enqueue(number)

    assert run_tasks(max_tasks=0) == []
    assert len(run_tasks(max_tasks=2)) == 2
    assert len(run_tasks()) == 1


def test_tasks_run_on_the_callers_thread(trace):
    thread.enqueue()
    run_tasks()

    assert trace == [threading.get_ident()]


def test_language_and_time_zone_are_the_workers(trace, settings):
    note_surroundings.enqueue()
    note_surroundings.enqueue()
    with translation.override("fr"), timezone.override("Europe/Paris"):
        run_tasks()
        assert translation.get_language() == "fr"

    assert len(trace) == 2
    assert trace[0] == trace[1] == (settings.LANGUAGE_CODE, settings.TIME_ZONE, "unset")


def test_keyboard_interrupt_passes_and_the_job_is_given_back():
    result = interrupt.enqueue()
    after = add.enqueue(1)
    with pytest.raises(KeyboardInterrupt):
        run_tasks()
    detail = task_backends["default"].engine.job(result.id)

    assert (detail.job.state, detail.job.attempts) == (State.READY, 0)
    assert after.attempts == 0
    task_backends["default"].engine.discard([result.id])
    assert [one.id for one in run_tasks()] == [after.id]


def test_it_cannot_be_called_from_a_coroutine_but_beside_it():
    add.enqueue(1)

    async def wrong():
        run_tasks()

    async def right():
        return await sync_to_async(run_tasks)()

    with pytest.raises(RuntimeError, match=r"sync_to_async\(run_tasks\)"):
        asyncio.run(wrong())
    assert len(asyncio.run(right())) == 1


def test_queues_are_a_list():
    with pytest.raises(TypeError, match="not the string 'emails'"):
        run_tasks(queues="emails")


def test_another_backend_is_refused(settings):
    module = type(add).__mro__[1].__module__.removesuffix(".base")
    configure_backend(
        settings, BACKEND=f"{module}.backends.dummy.DummyBackend", OPTIONS={}
    )

    with pytest.raises(ImproperlyConfigured, match="DummyBackend"):
        run_tasks()


def test_an_error_of_the_engine_is_raised(monkeypatch):
    def fail(*_args, **_kwargs):
        raise RuntimeError("the engine")

    engine = task_backends["default"].engine
    monkeypatch.setattr(engine, "run_worker", fail)
    with pytest.raises(RuntimeError, match="the engine"):
        run_tasks()


@pytest.mark.django_db
def test_tasks_see_the_rows_of_the_tests_transaction():
    User.objects.create(username="ada")
    create_user.enqueue("bob")
    acount_users.enqueue()
    _, counted = run_tasks()

    assert counted.return_value == 2
    assert connection.in_atomic_block
    assert {user.username for user in User.objects.all()} == {"ada", "bob"}


@pytest.mark.django_db
def test_a_failure_leaves_the_tests_transaction_usable():
    create_user.enqueue("ada")
    fail_once.enqueue("value")
    run_tasks()

    assert User.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_an_open_one_is_rolled_back():
    leave_open.enqueue("ada", "autocommit")
    run_tasks()

    assert connection.get_autocommit()
    assert not User.objects.exists()


@pytest.mark.django_db
def test_queries_that_a_test_counts_are_not_forgotten(django_assert_num_queries):
    create_user.enqueue("ada")
    with django_assert_num_queries(1):
        run_tasks()


@pytest.fixture
def immediate(settings):
    configure_backend(settings, BACKEND="django_nobroker.testing.ImmediateBackend")


@pytest.mark.usefixtures("immediate")
def test_the_immediate_backend_runs_a_job_within_its_enqueue():
    result = add.enqueue(1, b=2)

    assert result.return_value == 3
    assert result.task.get_result(result.id).return_value == 3
    assert [one.return_value for one in add.enqueue_many([((1,), {}), ((2,), {})])] == [
        1,
        2,
    ]


@pytest.mark.usefixtures("immediate")
def test_in_immediate_mode_values_make_the_same_round_trip():
    assert echo.enqueue((1, 2)).return_value == {"args": [[1, 2]], "kwargs": {}}
    with pytest.raises(TypeError, match="Unsupported type set at args"):
        echo.enqueue({1, 2})


@pytest.mark.usefixtures("immediate")
def test_in_immediate_mode_what_has_to_wait_is_left():
    later = add.using(run_after=timedelta(hours=1)).enqueue(1)
    failed = fail.enqueue()

    assert later.status is TaskResultStatus.READY
    assert failed.status is TaskResultStatus.READY
    assert [error.exception_class for error in failed.errors] == [ValueError]


@pytest.mark.usefixtures("immediate")
def test_in_immediate_mode_a_task_may_enqueue_others():
    assert chain.enqueue(3).return_value == 3
    assert run_tasks() == []


@pytest.mark.usefixtures("immediate")
def test_in_immediate_mode_an_interrupted_job_is_not_run_again(trace):
    with pytest.raises(KeyboardInterrupt):
        interrupt.enqueue()

    assert add.enqueue(1).return_value == 1
    assert run_tasks() == []


@pytest.mark.usefixtures("immediate")
def test_in_immediate_mode_coroutines_await_the_enqueue():
    async def right():
        return await add.aenqueue(1)

    async def wrong():
        return add.enqueue(1)

    assert asyncio.run(right()).return_value == 1
    with pytest.raises(RuntimeError, match="await aenqueue"):
        asyncio.run(wrong())


@pytest.mark.django_db
@pytest.mark.usefixtures("immediate")
def test_in_immediate_mode_jobs_run_when_the_callbacks_of_the_commit_do(
    django_capture_on_commit_callbacks,
):
    with django_capture_on_commit_callbacks(execute=True):
        create_user.enqueue_on_commit("ada")
        assert not User.objects.exists()

    assert User.objects.filter(username="ada").exists()
