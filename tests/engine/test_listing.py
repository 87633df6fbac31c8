"""Walking over jobs, forwards and backwards, page by page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_nobroker.engine import listing, states
from django_nobroker.engine.store import Store
from tests.faults.hands import SettableClock

from .driving import ack, add, kill, take_one


def walk(store, **options):
    return store.look(
        lambda tables: [position for position, _ in listing.walk(tables, **options)]
    )


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    root = tmp_path_factory.mktemp("listing")
    store = Store(str(root / "jobs"), index_root=str(root), clock=SettableClock())
    jobs = []
    for n in range(30):
        queue = "ab"[n % 2]
        jobs.append((add(store, n, queue=queue, priority=n).at, n))
        if n % 3 == 0:
            kill(store)
        elif n % 3 == 1:
            ack(store, take_one(store))
    yield store, [at for at, _ in jobs]
    store.close()


def test_all_jobs_are_walked_in_the_order_of_their_enqueues(filled):
    store, jobs = filled

    assert walk(store) == jobs
    assert walk(store, newest_first=True) == jobs[::-1]


@pytest.mark.parametrize(
    ("state", "rest"), [(states.DEAD, 0), (states.DONE, 1), (states.READY, 2)]
)
def test_jobs_of_one_state_are_walked(filled, state, rest):
    store, jobs = filled

    assert walk(store, state=state) == jobs[rest::3]
    assert walk(store, state=state, newest_first=True) == jobs[rest::3][::-1]


def test_jobs_of_one_queue_are_walked(filled):
    store, jobs = filled

    assert walk(store, queue=0) == jobs[0::2]
    assert walk(store, queue=1, state=states.DEAD) == jobs[3::6]
    assert walk(store, queue=7) == []


@given(data=st.data())
def test_pages_hold_every_job_once(filled, data):
    store, _ = filled
    newest_first = data.draw(st.booleans())
    state = data.draw(st.sampled_from([None, states.DEAD, states.DONE]))
    size = data.draw(st.integers(1, 7))
    options = {"newest_first": newest_first, "state": state}
    pages, after = [], None
    while page := walk(store, after=after, **options)[:size]:
        pages += page
        after = page[-1]

    assert pages == walk(store, **options)
