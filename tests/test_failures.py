"""From an exception to texts, and to what follows on it."""

from __future__ import annotations

import pytest

from django_nobroker import BackoffPolicy, Reject, Retry, failures, seam
from django_nobroker.options import QueueOptions
from tests.sample_tasks import RAISED, add, fail, picky, plain

OPTIONS = QueueOptions(backoff=BackoffPolicy(base=1, factor=2, jitter=0))


def attempt(number=1):
    return seam.Attempt(
        id="a",
        queue="default",
        kind="app.f",
        payload=b"{}",
        number=number,
        max_attempts=5,
        priority=0,
        enqueued_at=0.0,
        worker="w",
        extend=lambda seconds: None,
    )


def raised(error):
    def fail():
        raise error

    try:
        fail()
    except BaseException as caught:
        return caught


def outcome_of(error, task=add, number=1):
    described = failures.describe(error)
    return failures.outcome_of(error, task, attempt(number), OPTIONS, described)


# --- describe ---------------------------------------------------------------------


def test_an_error_is_its_class_its_text_and_its_traceback():
    error = failures.describe(raised(ValueError("oops")))

    assert (error.type, error.message) == ("builtins.ValueError", "oops")
    assert error.traceback.startswith("Traceback (most recent call last):")
    assert error.traceback.endswith("ValueError: oops\n")


def test_the_frames_of_the_callers_are_left_out():
    def inner():
        raise ValueError("x")

    def outer():
        inner()

    try:
        outer()
    except ValueError as error:
        described = failures.describe(error, callers={outer.__code__})

    assert "in inner" in described.traceback
    assert "in outer" not in described.traceback


@pytest.mark.parametrize("kind", RAISED)
def test_anything_that_can_be_raised_can_be_described(kind):
    error = failures.describe(raised(RAISED[kind]()))

    assert error.type.endswith(type(RAISED[kind]()).__qualname__)
    assert len(error.message) <= failures.MESSAGE_LIMIT + 100
    assert len(error.traceback) <= failures.TRACEBACK_LIMIT + 100
    (error.message + error.traceback).encode()


def test_a_text_that_cannot_be_had_is_replaced():
    error = failures.describe(RAISED["unspeakable"]())

    assert error.message == "<UnspeakableError: str() failed>"


def test_of_a_long_text_the_beginning_and_the_end_are_kept():
    error = failures.describe(ValueError("BEGIN" + "x" * 1_000_000 + "END"))

    assert error.message.startswith("BEGIN")
    assert error.message.endswith("END")
    assert "characters left out" in error.message


def test_ten_thousand_causes_are_described():
    error = ValueError("the last")
    for number in range(10_000):
        above = ValueError(str(number))
        above.__cause__ = error
        error = above

    assert "left out" in failures.describe(error).traceback


def test_causes_are_part_of_the_traceback():
    error = ValueError("second")
    error.__cause__ = KeyError("first")
    described = failures.describe(error)

    assert "KeyError: 'first'" in described.traceback
    assert "direct cause" in described.traceback


def test_a_huge_exception_is_known_by_its_text():
    assert failures.is_huge(RAISED["huge"]())
    assert not failures.is_huge(RAISED["value"]())
    assert not failures.is_huge(RAISED["unspeakable"]())


# --- what follows ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["exit", "interrupt", "cancelled", "value", "group"])
def test_a_failure_is_retried_after_the_queues_backoff(kind):
    outcome = outcome_of(RAISED[kind]())

    assert isinstance(outcome, seam.Retry)
    assert outcome.delay is None


@pytest.mark.parametrize(("number", "delay"), [(1, 8), (2, 16), (3, 32)])
def test_a_tasks_own_backoff_is_completed_by_the_queues(number, delay):
    outcome = outcome_of(ValueError(), fail, number)

    assert isinstance(outcome, seam.Retry)
    assert outcome.delay == delay


def test_retry_names_its_delay_or_leaves_it_to_the_backoff():
    assert outcome_of(Retry(after=30)).delay == 30.0
    assert outcome_of(Retry()).delay is None
    assert outcome_of(Retry(), fail).delay == 8
    assert outcome_of(Retry(after=0), fail).delay == 0.0


def test_retry_is_obeyed_whatever_the_task_retries():
    assert outcome_of(Retry(after=1), picky).delay == 1.0


def test_reject_leads_to_the_dead_letters():
    outcome = outcome_of(Reject("no such user"))

    assert isinstance(outcome, seam.Dead)
    assert outcome.reason == "rejected"
    assert outcome.error.message == "no such user"
    assert outcome.error.type == "django_nobroker.control.Reject"


@pytest.mark.parametrize(
    ("kind", "follows"),
    [("os", seam.Retry), ("missing", seam.Dead), ("value", seam.Dead)],
)
def test_only_some_are_retried_and_of_those_some_are_not(kind, follows):
    """``picky`` retries OSError, but not FileNotFoundError, which is one."""
    outcome = outcome_of(RAISED[kind](), picky)

    assert isinstance(outcome, follows)
    if isinstance(outcome, seam.Dead):
        assert outcome.reason == "not retried"


def test_a_task_without_our_options_is_retried():
    assert isinstance(outcome_of(ValueError(), plain), seam.Retry)
