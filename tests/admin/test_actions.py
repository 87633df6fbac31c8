from __future__ import annotations

import pytest

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

    chosen = ["gone", "dead", "waiting", "dead"]
    selection = Selection.of(engine, DISCARD, chosen)

    assert [job.id for job in selection.jobs] == ["dead"]
    assert selection.skipped == {
        "gone": "it is not in the store",
        "waiting": "it is not dead, it is waiting",
    }


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (None, ""),
        ("tests.admin.tasks.charge", ""),
        ("tests.admin.tasks.gone", "tests.admin.tasks has no task named 'gone'."),
        ("nowhere.charge", "nowhere.charge: no module 'nowhere'."),
        ("", "'' is not the path of a task."),
        (
            "tests.admin.broken_tasks.charge",
            "its task cannot be loaded: RuntimeError('<this module is broken>')",
        ),
    ],
)
def test_a_job_whose_task_is_gone_is_not_requeued_but_can_be_discarded(kind, reason):
    engine = FakeEngine()
    engine.put("a", kind=kind)

    requeue = Selection.of(engine, REQUEUE, ["a"])
    discard = Selection.of(engine, DISCARD, ["a"])

    assert requeue.skipped.get("a", "") == reason
    assert len(requeue.jobs) == (not reason)
    assert len(discard.jobs) == 1


def test_only_the_dead_are_handed_to_the_engine():
    engine = FakeEngine()
    engine.put("dead")
    engine.put("waiting", state=State.READY)

    moved = Selection.of(engine, DISCARD, ["dead", "waiting"]).move(engine, by="ann")

    assert engine.acted == [("discard", ["dead"], "ann")]
    assert moved.requeued == ("dead",)
    assert list(moved.skipped) == ["waiting"]


def test_an_empty_selection_does_not_trouble_the_engine():
    engine = FakeEngine()

    moved = Selection.of(engine, REQUEUE, ["gone"]).move(engine, by="ann")

    assert engine.acted == []
    assert list(moved.skipped) == ["gone"]
