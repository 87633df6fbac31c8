from __future__ import annotations

import time

import pytest

from django_nobroker.compat import BaseTaskBackend
from django_nobroker.exceptions import CorruptLogError, StorageError
from django_nobroker.seam import Problem, State

from .fake_engine import FakeEngine
from .reading import read

URL = "/admin/django_nobroker/queue/"


class EnginelessBackend(BaseTaskBackend):
    def enqueue(self, task, args, kwargs):
        raise NotImplementedError


def test_every_queue_has_a_row_with_its_figures(engine, boss):
    engine.put("a", queue="emails", state=State.READY)
    engine.put("b", queue="emails", state=State.LEASED)
    engine.put("c", queue="emails")
    engine.put("d", queue="reports", state=State.DONE)

    rows = read(boss.get(URL)).rows

    assert rows[0] == [
        "Queue",
        "Ready",
        "Delayed",
        "Running",
        "Done",
        "Dead",
        "Oldest waiting",
    ]
    assert rows[1:] == [
        ["emails", "1", "0", "1", "0", "1", "-"],
        ["reports", "0", "0", "0", "1", "0", "-"],
        ["All queues", "1", "0", "1", "1", "1", ""],
    ]


def test_the_oldest_waiting_job_has_an_age(engine, boss):
    engine.put("a", state=State.READY)
    engine.oldest_ready_at = time.time() - 3 * 3600 - 5 * 60 - 5

    assert "3\xa0hours, 5\xa0minutes" in boss.get(URL).content.decode()


def test_a_clock_that_was_set_back_makes_no_negative_age(engine, boss):
    engine.put("a", state=State.READY)
    engine.oldest_ready_at = time.time() + 3600

    assert "0 seconds" in read(boss.get(URL)).text


def test_what_is_wrong_is_told_with_what_mends_it(engine, boss):
    engine.listed_problems = [
        Problem(
            text="12 jobs are due and no worker is running.",
            hint="Start one: `manage.py runworker`",
        )
    ]

    page = read(boss.get(URL))

    sentence = (
        "12 jobs are due and no worker is running. Start one: manage.py runworker"
    )
    assert sentence in page.text
    assert len(page.all("code")) == 1


def test_an_empty_store_says_so(engine, boss):
    assert "No queue holds a job yet." in read(boss.get(URL)).text


@pytest.mark.parametrize(
    "error",
    [
        CorruptLogError("segment 0 is of format 9"),
        StorageError(5, "Input/output error"),
        PermissionError(13, "Permission denied"),
    ],
)
def test_a_store_that_cannot_be_opened_is_told_and_hides_no_other(
    configure, boss, error
):
    good = FakeEngine()
    good.put("a", queue="emails")
    configure(broken=error, good=good)

    page = read(boss.get(URL))

    assert "This store cannot be read." in page.text
    assert str(error) in page.text
    assert "emails" in page.text


def test_a_backend_that_cannot_be_made_is_told(engine, boss, settings):
    settings.TASKS = {**settings.TASKS, "gone": {"BACKEND": "nowhere.Backend"}}

    text = read(boss.get(URL)).text

    assert "This store cannot be read." in text
    assert "nowhere" in text


def test_backends_without_an_engine_are_not_shown(boss, settings):
    settings.TASKS = {"default": {"BACKEND": f"{__name__}.EnginelessBackend"}}

    text = read(boss.get(URL)).text

    assert "No task backend of this project keeps its jobs in a log." in text


def test_one_backend_needs_no_heading_and_two_do(configure, boss):
    configure(alpha=FakeEngine())
    assert "alpha" not in read(boss.get(URL)).text

    configure(alpha=FakeEngine(), beta=FakeEngine())
    text = read(boss.get(URL)).text
    assert "alpha" in text
    assert "beta" in text


def test_dead_letters_are_linked_for_who_may_see_them(engine, login):
    engine.put("a", queue="e&m/ails")
    link = "/admin/django_nobroker/deadjob/?backend=default&queue=e%26m%2Fails"

    assert link in read(login("view_queue", "view_deadjob").get(URL)).links
    assert link not in read(login("view_queue").get(URL)).links


def test_the_page_changes_nothing(engine, boss):
    engine.put("a")

    assert boss.post(URL, {"action": "requeue"}).status_code == 405
    assert engine.acted == []


@pytest.mark.parametrize("codenames", [(), ("view_deadjob",), ("requeue_job",)])
def test_without_the_permission_there_is_no_page(engine, login, codenames):
    assert login(*codenames).get(URL).status_code == 403


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "'><svg/onload=alert(1)>",
        "nul\0 surrogate\ud800 override\u202e bell\x07",
        "{{ 7|add:7 }}{% now 'Y' %}",
    ],
)
def test_names_and_problems_of_any_sort_are_only_text(configure, boss, text):
    engine = FakeEngine()
    engine.put("a", queue=text)
    engine.listed_problems = [Problem(text=text, hint=text)]
    configure(default=engine, broken=CorruptLogError(text))

    page = read(boss.get(URL))

    page.assert_harmless()
    if text.isprintable():
        assert page.text.count(text) == 4
    else:
        assert page.text.count(r"nul\x00 surrogate\ud800 override\u202e bell\x07") == 4
