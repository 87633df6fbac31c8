"""From what an engine knows to Django's ``TaskResult``; engine-free."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from django_nobroker import results
from django_nobroker.arguments import TaskCall
from django_nobroker.compat import TaskResultStatus
from django_nobroker.seam import AttemptView, Error, JobDetail, JobView, State
from tests.sample_tasks import add
from tests.stores import memory  # noqa: F401 - a fixture

pytestmark = pytest.mark.usefixtures("memory")

CALL = TaskCall(path=add.module_path, args=[1], kwargs={})
OOPS = Error(type="builtins.ValueError", message="oops", traceback="Traceback: oops\n")


def result_of(*history, result=None, **values):
    view = JobView(
        **{
            "id": "a",
            "position": 1,
            "queue": "emails",
            "kind": CALL.path,
            "state": State.READY,
            "priority": 5,
            "attempts": len(history),
            "max_attempts": 5,
            "enqueued_at": 1000.0,
            "available_at": 1000.0,
            **values,
        }
    )
    detail = JobDetail(job=view, payload=b"", result=result, history=history)
    return results.from_job(detail, add, CALL, "default")


def attempt(outcome, worker="w1", error=None):
    return AttemptView(
        number=1,
        worker=worker,
        started_at=1001.0,
        finished_at=1002.0,
        outcome=outcome,
        error=error,
    )


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (State.READY, TaskResultStatus.READY),
        (State.LEASED, TaskResultStatus.RUNNING),
        (State.DONE, TaskResultStatus.SUCCESSFUL),
        (State.DEAD, TaskResultStatus.FAILED),
        (State.DISCARDED, TaskResultStatus.FAILED),
    ],
)
def test_every_state_has_its_status(state, status):
    assert result_of(state=state).status is status


def test_times_are_aware_and_in_utc():
    result = result_of(started_at=1001.5, last_attempted_at=1002.0, finished_at=1003.0)

    assert result.enqueued_at == datetime(1970, 1, 1, 0, 16, 40, tzinfo=UTC)
    assert result.started_at.microsecond == 500_000
    assert result.last_attempted_at < result.finished_at


def test_the_task_is_as_it_was_enqueued():
    result = result_of()

    assert (result.task.priority, result.task.queue_name) == (5, "emails")
    assert (result.task.func, result.task.backend) == (add.func, "default")
    assert (result.args, result.kwargs, result.id) == ([1], {}, "a")


def test_a_job_for_later_says_when_until_it_was_tried():
    later = {"available_at": 2000.0}

    assert result_of(**later).task.run_after.timestamp() == 2000.0
    assert result_of(attempt("failed", error=OOPS), **later).task.run_after is None


def test_attempts_that_were_given_back_are_in_neither_list():
    result = result_of(
        attempt("failed", "w1", OOPS),
        attempt("released", "w2"),
        attempt("running", "w3"),
        state=State.LEASED,
    )

    assert result.worker_ids == ["w1", "w3"]
    assert [error.exception_class for error in result.errors] == [ValueError]


@pytest.mark.parametrize(
    "error", [None, Error(type="LeaseExpired", message="lease expired: worker lost")]
)
def test_a_lost_worker_is_an_error_with_a_class(error):
    (found,) = result_of(attempt("lost", error=error)).errors

    assert found.exception_class.__name__ == "WorkerLost"
    assert found.traceback == "lease expired: worker lost"


def test_a_word_of_the_engine_is_no_path_of_a_class():
    error = Error(type="DamagedRecord", message="the record is damaged")
    (found,) = result_of(attempt("failed", error=error)).errors

    assert found.exception_class.__name__ == "NobrokerError"
    assert found.traceback == "the record is damaged"


def test_only_a_finished_job_has_a_return_value():
    assert result_of(state=State.DONE, result=b"[1]").return_value == [1]
    assert result_of(state=State.DONE).return_value is None
    with pytest.raises(ValueError, match="not finished"):
        result_of(result=b"[1]").return_value  # noqa: B018


def test_ids_that_are_made_are_new():
    assert len({results.new_id() for _ in range(100)}) == 100
