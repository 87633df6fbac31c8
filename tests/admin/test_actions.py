from __future__ import annotations

from django_nobroker.admin.actions import ACTIONS, DISCARD, REQUEUE, STATES, Selection
from django_nobroker.models import Job
from django_nobroker.seam import State

from .fake_engine import FakeEngine


def test_each_action_is_guarded_by_a_permission_that_exists():
    codenames = {codename for codename, _ in Job._meta.permissions}

    assert {action.permission for action in ACTIONS.values()} <= codenames


def test_each_state_has_a_word():
    assert set(State) == set(STATES)


def test_a_selection_parts_the_dead_from_the_rest():
    engine = FakeEngine()
    engine.put("dead")
    engine.put("waiting", state=State.READY)

    selection = Selection.of(engine, ["gone", "dead", "waiting", "dead"])

    assert [job.id for job in selection.dead] == ["dead"]
    assert selection.skipped == {
        "gone": "it is not in the store",
        "waiting": "it is not dead, it is waiting",
    }


def test_only_the_dead_are_handed_to_the_engine():
    engine = FakeEngine()
    engine.put("dead")
    engine.put("waiting", state=State.READY)

    selection = Selection.of(engine, ["dead", "waiting"])
    moved = selection.move(DISCARD, engine, by="ann")

    assert engine.acted == [("discard", ["dead"], "ann")]
    assert moved.requeued == ("dead",)
    assert list(moved.skipped) == ["waiting"]


def test_an_empty_selection_does_not_trouble_the_engine():
    engine = FakeEngine()

    moved = Selection.of(engine, ["gone"]).move(REQUEUE, engine, by="ann")

    assert engine.acted == []
    assert list(moved.skipped) == ["gone"]
