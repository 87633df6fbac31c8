from __future__ import annotations

import pytest
from django.http import QueryDict

from django_nobroker.admin.listing import Filter, Listing, cause, row
from django_nobroker.seam import Error

from .fake_engine import FakeEngine


def test_an_address_without_a_query_asks_for_the_newest_of_all():
    assert Filter.of(QueryDict("")) == Filter()
    assert not Filter().narrows


def test_an_address_names_queue_task_and_key():
    wanted = Filter.of(QueryDict("queue=emails&task=a.b&after=17"))

    assert wanted == Filter(queue="emails", task="a.b", after=17)
    assert wanted.narrows


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "9223372036854775808", "²"])
def test_a_key_that_is_none_is_reported(text):
    query = QueryDict(mutable=True)
    query["after"] = text

    assert Filter.of(query) == Filter(bad_key=text)


def test_the_total_is_exact_or_left_out():
    engine = FakeEngine()
    for number in range(5):
        engine.put(f"a{number}", queue="a", kind="x.y")
    engine.put("b", queue="b", kind="x.z")

    assert Listing.read(engine, Filter(), 2).total == 6
    assert Listing.read(engine, Filter(queue="a"), 2).total == 5
    assert Listing.read(engine, Filter(task="x.y"), 2).total is None


def test_queues_without_dead_letters_are_no_choice_but_a_chosen_one_stays():
    engine = FakeEngine()
    engine.put("a", queue="a")
    engine.put("nul", queue="n\0l")

    assert Listing.read(engine, Filter(), 2).queues == ("a",)
    assert Listing.read(engine, Filter(queue="gone"), 2).queues == ("a", "gone")


@pytest.mark.parametrize(
    ("error", "reason", "line"),
    [
        (Error(type="a.b.Boom", message="it broke"), "attempts", "Boom: it broke"),
        (Error(type="Boom", message=""), "attempts", "Boom"),
        (Error(type="a.", message="x"), "", "a.: x"),
        (Error(type="", message="x"), "", "x"),
        (None, "rejected", "rejected"),
        (None, "", ""),
    ],
)
def test_the_cause_of_death_is_one_line(error, reason, line):
    assert cause(error, reason) == line


def test_a_row_takes_a_task_apart_at_its_dots():
    engine = FakeEngine()

    assert row(engine.put("a", kind="x.y.z")).task_path == ("x", "y", "z")
    assert row(engine.put("b", kind=None)).task_path == ()
