"""Bringing many dead jobs back at once; single ones are shown with their settlement."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from django_nobroker.engine import deadletters
from django_nobroker.engine.errors import QueueFull

from .driving import TIMEOUT, add, add_many, counts, kill, records, take


def requeue(store, positions, **options):
    return deadletters.requeue(
        store, positions, by="ada", durable=True, timeout=TIMEOUT, **options
    )


def test_all_or_none_are_moved_within_a_capacity_in_one_transaction(store, files):
    dead = []
    for n in range(5):
        add(store, n)
        dead.append(kill(store))
    with pytest.raises(QueueFull):
        requeue(store, dead, max_pending=4)
    assert counts(store) == {"dead": 5}
    files.forget()

    assert requeue(store, dead, max_pending=5) == dead

    assert files.count("write") == 1
    assert counts(store) == {"ready": 5}


def test_a_job_is_moved_once_however_often_it_is_named(store):
    add(store)
    dead = kill(store)

    assert requeue(store, [dead, dead, dead]) == [dead]
    assert requeue(store, [dead]) == []


def test_of_many_who_requeue_a_job_at_once_one_moves_it(store, open_store, clock):
    add(store)
    dead = kill(store)
    handles = [open_store(clock=clock, handle=f"{n}") for n in range(4)]

    with ThreadPoolExecutor(8) as threads:
        moved = list(threads.map(lambda one: requeue(one, [dead]), handles * 2))

    assert sorted(moved) == [[]] * 7 + [[dead]]
    assert counts(store) == {"ready": 1}


def test_nothing_to_move_writes_nothing(store):
    before = len(records(store.directory))

    assert requeue(store, []) == []
    assert requeue(store, [1, 2, 3]) == []

    assert len(records(store.directory)) == before


def test_requeued_jobs_are_taken_after_those_that_wait_longer(store, clock):
    add(store, "dead")
    dead = kill(store)
    clock.advance(1)
    waiting = add_many(store, [1, 2])
    clock.advance(1)
    requeue(store, [dead])

    order = [job.position for _ in range(3) for job in take(store)]

    assert order == [*[job.at for job in waiting], dead]
