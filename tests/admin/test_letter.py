from __future__ import annotations

import pytest

from django_nobroker.admin.letter import ATTEMPTS_MAX, Letter
from django_nobroker.seam import AttemptView

from .fake_engine import NOW, FakeEngine


def attempt(number, outcome="failed", **fields):
    values = {"worker": "w", "started_at": NOW, "finished_at": NOW + 1, **fields}
    return AttemptView(number=number, outcome=outcome, **values)


def letter(**fields):
    engine = FakeEngine()
    engine.put("a", **fields)
    return Letter.of(engine.details["a"])


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("attempts", "All its attempts failed."),
        ("rejected", "The task rejected it."),
        ("lost", "Its worker was lost during the last attempt."),
        ("of an engine to come", "of an engine to come"),
        ("", ""),
    ],
)
def test_the_reason_is_a_sentence_if_it_is_a_known_one(reason, sentence):
    assert str(letter(reason=reason).reason) == sentence


@pytest.mark.parametrize(
    ("outcome", "words", "failed"),
    [
        ("running", "running", False),
        ("done", "succeeded", False),
        ("failed", "failed", True),
        ("lost", "worker lost", True),
        ("released", "given back, not counted", False),
        ("other", "other", False),
    ],
)
def test_each_attempt_tells_its_outcome(outcome, words, failed):
    (shown,) = letter(history=(attempt(1, outcome),)).timeline

    assert (str(shown.outcome), shown.failed) == (words, failed)


def test_an_attempt_that_has_not_ended_took_no_time_yet():
    (shown,) = letter(history=(attempt(1, "running", finished_at=None),)).timeline

    assert shown.took == ""


def test_of_very_many_attempts_the_latest_are_shown():
    history = tuple(attempt(number) for number in range(1, ATTEMPTS_MAX + 11))

    shown = letter(history=history)

    assert [one.number for one in shown.timeline] == list(range(11, ATTEMPTS_MAX + 11))
    assert shown.left_out == 10


def test_a_job_without_error_and_history_is_a_letter_too():
    shown = letter(error=None, history=())

    assert (shown.error, shown.timeline, shown.left_out) == (None, (), 0)
