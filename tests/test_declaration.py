"""The decorator, the options of a task, and ``using``."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import django
import pytest
from django.utils import timezone

from django_nobroker import BackoffPolicy, task
from django_nobroker.compat import InvalidTask, Task, task_backends
from django_nobroker.declaration import NobrokerTask
from tests import sample_tasks
from tests.sample_tasks import add, echo, fail, picky
from tests.stores import configure_backend, memory  # noqa: F401 - a fixture

pytestmark = pytest.mark.usefixtures("memory")

DUMMY = "backends.dummy.DummyBackend"
IMMEDIATE = "backends.immediate.ImmediateBackend"
FRAMEWORK = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"


def function():
    """Becomes a task in many a test."""


def test_without_parentheses_the_defaults_hold():
    assert isinstance(add, NobrokerTask)
    assert (add.priority, add.queue_name, add.backend) == (0, "default", "default")
    assert (add.max_attempts, add.backoff, add.retry_on) == (None, None, None)
    assert (add.no_retry_on, add.timeout, add.job_id) == ((), None, None)
    assert add.run_after is None
    assert not add.takes_context
    assert add.func(1, 2) == add.call(1, 2) == 3


def test_options_are_kept():
    assert (echo.queue_name, echo.priority, echo.max_attempts) == ("emails", 7, 2)
    assert fail.backoff == {"base": 8, "jitter": 0}
    assert (picky.retry_on, picky.no_retry_on) == ((OSError,), (FileNotFoundError,))


def test_the_decorator_of_the_framework_makes_the_same_kind():
    assert type(sample_tasks.plain) is NobrokerTask


def test_a_whole_backoff_policy_may_be_given():
    declared = task(backoff=BackoffPolicy(base=3, jitter=0))(function)

    assert declared.backoff_over(BackoffPolicy()) == BackoffPolicy(base=3, jitter=0)


def test_a_part_of_a_backoff_is_completed_by_the_queues():
    queue = BackoffPolicy(base=1, factor=7, jitter=0.1)

    assert fail.backoff_over(queue) == BackoffPolicy(base=8, factor=7, jitter=0)
    assert add.backoff_over(queue) is None


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("max_attempts", 0, "max_attempts must be a whole number of at least 1"),
        ("max_attempts", "3", "max_attempts must be a whole number"),
        ("max_attempts", True, "max_attempts must be a whole number"),
        ("backoff", {"bse": 1}, "backoff must be a mapping with the keys base"),
        ("backoff", {"base": "1"}, "backoff is wrong: base must be a number"),
        ("backoff", 5, "backoff must be a mapping"),
        ("retry_on", "ValueError", "retry_on must be exception classes"),
        ("retry_on", (ValueError, int), "retry_on must be exception classes"),
        ("retry_on", ValueError("x"), "retry_on must be exception classes"),
        ("no_retry_on", None, "no_retry_on must be exception classes"),
        ("timeout", 0, "timeout must be a number of seconds, more than 0"),
        ("timeout", float("nan"), "timeout must be a number of seconds"),
        ("priority", "high", "priority must be a whole number"),
        ("priority", True, "priority must be a whole number"),
        ("priority", 101, "priority must be a whole number between -100 and 100"),
        ("priority", 1.5, "priority must be a whole number between -100 and 100"),
        ("queue_name", "", "queue_name must have 1 to 200 characters"),
        ("queue_name", "a\nb", "queue_name must not hold control characters"),
        ("queue_name", 5, "queue_name must be a string"),
        ("takes_context", True, "first argument of 'context'"),
    ],
)
def test_a_wrong_option_is_refused_at_the_declaration(name, value, text):
    with pytest.raises(InvalidTask, match=text):
        task(**{name: value})(function)


def test_only_module_level_functions_become_tasks():
    def inner():
        """Is nowhere to be found by its path."""

    for candidate in (inner, len, add, print, int, object().__str__):
        with pytest.raises(InvalidTask, match="module level"):
            task()(candidate)


def test_an_unknown_option_names_the_nearest():
    with pytest.raises(TypeError, match=r"'max_attempt'. Did you mean max_attempts\?"):
        task(max_attempt=3)(function)


def test_using_changes_a_copy():
    changed = add.using(priority=5, queue_name="other", job_id="welcome-1")

    assert (changed.priority, changed.queue_name) == (5, "other")
    assert changed.job_id == "welcome-1"
    assert (add.priority, add.queue_name, add.job_id) == (0, "default", None)
    assert changed.using(priority=6).job_id == "welcome-1"
    assert isinstance(changed, NobrokerTask)


def test_using_keeps_the_options_of_the_declaration():
    assert fail.using(priority=1).max_attempts == 3


def test_using_takes_a_datetime_or_a_delay():
    moment = datetime(2040, 1, 1, tzinfo=UTC)
    before = timezone.now()
    delayed = add.using(run_after=timedelta(minutes=5))

    assert add.using(run_after=moment).run_after == moment
    assert before <= delayed.run_after - timedelta(minutes=5) <= timezone.now()
    assert delayed.using(run_after=moment).delay is None


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"job_id": ""}, "job_id must have 1 to 200 characters"),
        ({"job_id": "x" * 201}, "job_id must have 1 to 200 characters"),
        ({"job_id": "a\x00b"}, "job_id must not hold control characters"),
        ({"job_id": 5}, "job_id must be a string"),
        ({"run_after": datetime(2040, 1, 1)}, "run_after must be an aware datetime"),
        ({"run_after": 5}, "run_after must be a datetime or a timedelta"),
        ({"run_after": timedelta.max}, "run_after is too far away"),
    ],
)
def test_using_refuses_what_cannot_be(given, text):
    with pytest.raises(InvalidTask, match=text):
        add.using(**given)


def test_tasks_are_hashable_and_compare_by_what_they_are():
    assert hash(fail) == hash(fail.using())
    assert fail == fail.using()
    assert add.using(job_id="a") == add
    assert add.using(priority=1) != add
    assert replace(fail) == fail


@pytest.mark.skipif(django.VERSION < (6, 1), reason="tasks pickle since Django 6.1")
def test_tasks_can_be_pickled_where_djangos_can():
    assert pickle.loads(pickle.dumps(fail)) == fail


def test_tasks_can_be_copied():
    assert copy.copy(add) == add


@pytest.mark.parametrize("path", [DUMMY, IMMEDIATE])
def test_all_options_can_be_declared_under_the_frameworks_own_backends(settings, path):
    """A test that swaps the backend must be able to import the tasks."""
    configure_backend(settings, BACKEND=f"{FRAMEWORK}.{path}", OPTIONS={})
    declared = task(
        max_attempts=3, backoff={"base": 5}, retry_on=(OSError,), timeout=30
    )(function)

    assert isinstance(declared, Task)
    assert declared.max_attempts == 3


def test_enqueue_many_and_on_commit_work_on_a_foreign_backend(settings):
    configure_backend(settings, BACKEND=f"{FRAMEWORK}.{IMMEDIATE}", OPTIONS={})
    results = add.enqueue_many([((1, 2), {}), ((3,), {"b": 4})])

    assert [result.return_value for result in results] == [3, 7]
    assert type(task_backends["default"]).__name__ == "ImmediateBackend"


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_a_foreign_backend_enqueues_at_once(settings):
    configure_backend(settings, BACKEND=f"{FRAMEWORK}.{IMMEDIATE}", OPTIONS={})

    assert add.enqueue_on_commit(1, b=2).return_value == 3


@pytest.mark.parametrize(
    "call", [1, "ab", ((1,),), ((1,), {}, {}), ({}, ()), ((1,), 2)]
)
def test_enqueue_many_takes_pairs_only(call):
    with pytest.raises(TypeError, match="number 1 is"):
        add.enqueue_many([((1,), {}), call])


def test_one_id_cannot_be_that_of_many_jobs():
    with pytest.raises(InvalidTask, match="job_id names one job"):
        add.using(job_id="a").enqueue_many([((1,), {}), ((2,), {})])
