"""Calling a task's function, sync or async."""

from __future__ import annotations

import pytest

from django_nobroker.control import TaskTimeout
from django_nobroker.invocation import call, check_arguments
from tests import sample_tasks


def test_a_function_is_called_with_its_arguments():
    assert call(sample_tasks.add, [1], {"b": 2}) == 3


def test_a_coroutine_function_runs_to_its_end():
    assert call(sample_tasks.aadd, [1], {"b": 2}) == 3


def test_a_coroutine_that_takes_too_long_is_cancelled():
    with pytest.raises(TaskTimeout, match=r"longer than its timeout of 0\.05 s"):
        call(sample_tasks.hang, [], {})


@pytest.mark.parametrize(
    ("task", "cause"),
    [
        (sample_tasks.hang, None),
        (sample_tasks.stubborn, None),
        (sample_tasks.untidy, "while tidying up"),
    ],
    ids=["hang", "stubborn", "untidy"],
)
def test_a_timeout_counts_whatever_the_coroutine_makes_of_it(task, cause):
    with pytest.raises(TaskTimeout) as caught:
        call(task, [], {})

    assert (caught.value.__cause__ and str(caught.value.__cause__)) == cause


def test_a_timeout_of_the_tasks_own_is_not_ours():
    with pytest.raises(TimeoutError, match="the mail server's") as caught:
        call(sample_tasks.own_timeout, [], {})
    assert not isinstance(caught.value, TaskTimeout)


def test_a_function_that_takes_too_long_is_reported(caplog):
    assert call(sample_tasks.slow, [], {}) is False
    assert "tests.sample_tasks.slow took" in caplog.text
    assert "more than its timeout" in caplog.text


@pytest.mark.parametrize(
    ("args", "kwargs"), [([], {}), ([1, 2, 3], {}), ([1], {"a": 1}), ([1], {"c": 1})]
)
def test_arguments_that_do_not_fit_are_told(args, kwargs):
    with pytest.raises(TypeError):
        check_arguments(sample_tasks.add, args, kwargs)


def test_arguments_that_fit_are_not():
    check_arguments(sample_tasks.add, [1], {"b": 2})
    check_arguments(sample_tasks.echo, [1, 2], {"timeout": 3, "priority": 4})
