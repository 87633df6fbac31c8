"""What each record does to a job: a table, and a pure one."""

from __future__ import annotations

import copy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from django_nobroker.engine import states
from django_nobroker.engine.lease import Token
from django_nobroker.engine.record import (
    Ack,
    Dead,
    Discard,
    Enqueue,
    Extend,
    Failure,
    JobRecord,
    Lease,
    Nack,
    Release,
    Requeue,
)
from django_nobroker.engine.states import (
    DEAD,
    DISCARDED,
    DONE,
    FORGOTTEN,
    LEASED,
    READY,
    Row,
)


def enqueued(**values: object) -> Row:
    one = Enqueue(
        **{
            "at": 100,
            "id": "a",
            "queue": "q",
            "t": 5.0,
            "max": 3,
            "payload": Raw(b"1"),
            **values,
        }  # type: ignore[arg-type]
    )
    return states.enqueued(one, queue=2, kind=1, size=50)


def record(kind: type[JobRecord], at: int, **values: object) -> JobRecord:
    given_values: dict[str, object] = {
        "job": 100,
        "prev": 100,
        "t": float(at),
        "at": at,
    }
    extra: dict[type[JobRecord], dict[str, object]] = {
        Lease: {"until": 40.0, "attempt": 1},
        Extend: {"until": 90.0},
        Nack: {"delay": 4.0, "until": 44.0, "error": Failure(message="no")},
        Dead: {"error": Failure(message="no"), "reason": "attempts"},
    }
    return kind(**{**given_values, **extra.get(kind, {}), **values})  # type: ignore[arg-type]


def happen(
    row: Row, *records: JobRecord, epoch: int = 7, generation: int = 3
) -> list[bool]:
    return [
        states.apply(row, one, epoch=epoch, generation=generation) for one in records
    ]


def in_state(state: int) -> Row:
    row = enqueued()
    way: dict[int, list[JobRecord]] = {
        READY: [],
        LEASED: [record(Lease, 200)],
        DONE: [record(Lease, 200), record(Ack, 300)],
        DEAD: [record(Lease, 200), record(Dead, 300)],
        DISCARDED: [record(Discard, 200)],
        FORGOTTEN: [record(Discard, 200)],
    }
    assert all(happen(row, *way[state]))
    if state == FORGOTTEN:
        assert states.forget(row, 400, 50)
    assert row.state == state
    return row


def test_a_new_job_is_ready_and_due_at_once():
    row = enqueued()

    assert (row.state, row.timer, row.attempts) == (READY, states.DUE, 0)
    assert (row.enqueued_at, row.available_at) == (5.0, 5.0)
    assert (row.data, row.size, row.last) == (100, 50, 100)


def test_a_job_for_later_waits_for_the_wall_clock():
    row = enqueued(due=99.0)

    assert (row.timer, row.available_at, row.enqueued_at) == (states.WALL, 99.0, 5.0)


def test_a_lease_counts_the_attempt_and_names_the_token():
    row = in_state(LEASED)

    assert (row.attempts, row.until, row.generation) == (1, 40.0, 3)
    assert row.lease_token == Token(7, 200)
    assert row.started_at == row.attempted_at == 200.0


def test_a_later_attempt_keeps_when_the_job_first_began():
    row = in_state(LEASED)

    happen(row, record(Nack, 300), record(Lease, 400, attempt=2))

    assert (row.attempts, row.started_at, row.attempted_at) == (2, 200.0, 400.0)


def test_an_extension_moves_the_deadline_and_keeps_the_token():
    row = in_state(LEASED)

    happen(row, record(Extend, 300))

    assert (row.until, row.lease_token) == (90.0, Token(7, 200))


def test_a_retry_waits_on_the_boot_clock_and_voids_the_token():
    row = in_state(LEASED)

    happen(row, record(Nack, 300))

    assert (row.state, row.timer) == (READY, states.BOOT)
    assert (row.until, row.available_at, row.error) == (44.0, 304.0, 300)
    assert row.token == 0


def test_a_retry_without_delay_is_due_at_once():
    row = in_state(LEASED)

    happen(row, record(Nack, 300, delay=0.0))

    assert row.timer == states.DUE


def test_a_job_given_back_has_not_used_the_attempt():
    row = in_state(LEASED)

    happen(row, record(Release, 300))

    assert (row.state, row.timer, row.attempts, row.token) == (READY, states.DUE, 0, 0)


def test_a_requeued_job_has_all_its_attempts_before_it():
    row = in_state(DEAD)

    happen(row, record(Requeue, 400))

    assert (row.state, row.timer, row.attempts, row.error) == (READY, states.DUE, 0, 0)
    assert (row.available_at, row.finished_at) == (400.0, 0.0)


def test_a_finished_job_keeps_the_token_that_finished_it():
    row = in_state(DONE)

    assert (row.lease_token, row.finished_at) == (Token(7, 200), 300.0)


FITS = {
    Lease: {READY, LEASED, DEAD},
    Extend: {LEASED},
    Ack: {READY, LEASED},
    Nack: {READY, LEASED},
    Dead: {READY, LEASED},
    Release: {LEASED},
    Requeue: {DEAD},
    Discard: {READY, DEAD},
}


@pytest.mark.parametrize("kind", FITS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("state", range(states.STATES))
def test_a_record_that_does_not_fit_the_state_is_told_and_changes_nothing(kind, state):
    row = in_state(state)
    before = copy.copy(row)

    (fitted,) = happen(row, record(kind, 900))

    assert fitted == (state in FITS[kind])
    if not fitted:
        assert row == before
    else:
        assert row.last == 900


@given(kinds=st.lists(st.sampled_from(list(FITS)), max_size=30))
def test_the_same_history_always_makes_the_same_job(kinds):
    history = [record(kind, 200 + 100 * n) for n, kind in enumerate(kinds)]
    before = msgspec.json.encode(history)
    first, second = enqueued(), enqueued()

    fitted = happen(first, *history)

    assert happen(second, *history) == fitted
    assert first == second
    assert msgspec.json.encode(history) == before


@given(kinds=st.lists(st.sampled_from(list(FITS)), max_size=30))
def test_whatever_happens_a_finished_job_stays_finished(kinds):
    row = in_state(DONE)
    before = copy.copy(row)

    happen(row, *[record(kind, 400 + n) for n, kind in enumerate(kinds)])

    assert row == before
