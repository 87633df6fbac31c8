"""Keys are byte strings whose order is the order that is documented."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from django_nobroker.engine import keys, states
from django_nobroker.engine.states import Row

moment = st.floats(min_value=0.0, max_value=1e12, allow_nan=False)
position = st.integers(0, 2**48)
ready_row = st.builds(
    Row,
    id=st.just("a"),
    queue=st.integers(0, 3) | st.integers(0, keys.STORE_WIDE - 1),
    kind=st.just(0),
    priority=st.integers(-3, 3) | st.integers(-(2**15), 2**15 - 1),
    enqueued_at=st.just(0.0),
    available_at=st.sampled_from([0.0, 1.0, 1.5]) | moment,
    max_attempts=st.just(3),
    timer=st.just(states.DUE),
    data=st.just(0),
    size=st.just(0),
    last=st.just(0),
    weight=st.just(0),
)


def numbered(rows: list[Row], places: list[int]) -> list[tuple[Row, int]]:
    return list(zip(rows, places, strict=False))


@given(
    rows=st.lists(ready_row, max_size=12),
    places=st.lists(position, min_size=12, max_size=12, unique=True),
)
def test_ready_jobs_sort_by_queue_priority_availability_and_insertion(rows, places):
    jobs = numbered(rows, places)

    by_key = sorted(jobs, key=lambda job: keys.order(*job))

    assert by_key == sorted(
        jobs,
        key=lambda job: (job[0].queue, -job[0].priority, job[0].available_at, job[1]),
    )


@given(
    first=ready_row, second=ready_row, places=st.lists(position, min_size=2, max_size=2)
)
def test_the_rest_of_a_ready_key_sorts_jobs_of_several_queues(first, second, places):
    """Claims merge the orders of queues by what follows the queue's number."""
    jobs = numbered([first, second], places)

    by_key = sorted(jobs, key=lambda job: keys.order(*job)[keys.QUEUE_END :])

    assert by_key == sorted(
        jobs, key=lambda job: (-job[0].priority, job[0].available_at, job[1])
    )


@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 2**32 - 1), moment, position), max_size=12, unique=True
    )
)
def test_leases_sort_by_boot_then_deadline(jobs):
    """Those of boots before come first: they are void."""
    made = []
    for generation, until, place in jobs:
        row = Row(
            priority=0,
            timer=states.DUE,
            id="a",
            queue=0,
            kind=0,
            state=states.LEASED,
            enqueued_at=0.0,
            available_at=0.0,
            max_attempts=1,
            until=until,
            generation=generation,
            data=0,
            size=0,
            last=0,
            weight=0,
        )
        made.append(keys.order(row, place))

    assert [
        (*keys.timed_parts(key), keys.position_of(key)) for key in sorted(made)
    ] == sorted(jobs)


@given(row=ready_row, place=position)
def test_a_ready_key_gives_back_what_it_was_made_of(row, place):
    key = keys.order(row, place)

    assert keys.position_of(key) == place
    assert keys.ready_parts(key) == (row.priority, row.available_at)
    assert key.startswith(keys.queue_prefix(keys.READY, row.queue))
    assert key.startswith(keys.ready_prefix(row.queue, row.priority))


@given(row=ready_row, place=position)
def test_a_time_of_negative_zero_sorts_as_zero(row, place):
    """Its sign bit would put the entry behind all others."""
    row.available_at = -0.0
    negative = keys.order(row, place)
    row.available_at = 0.0

    assert negative == keys.order(row, place)


def test_a_job_of_each_state_has_an_order_and_a_counter_of_its_own():
    found = set()
    for state in range(states.STATES):
        for timer in (states.DUE, states.WALL, states.BOOT):
            row = Row(
                priority=0,
                id="a",
                queue=1,
                kind=0,
                state=state,
                enqueued_at=0.0,
                available_at=0.0,
                max_attempts=1,
                timer=timer,
                data=0,
                size=0,
                last=0,
                weight=0,
            )
            key = keys.order(row, 5)
            found.add((key[:1], keys.slot(row)))

    assert found == {
        (keys.READY, keys.READY_SLOT),
        (keys.WALL, keys.DELAYED_SLOT),
        (keys.BOOT, keys.DELAYED_SLOT),
        (keys.LEASED, keys.LEASED_SLOT),
        (keys.DONE, keys.DONE_SLOT),
        (keys.DEAD, keys.DEAD_SLOT),
        (keys.DISCARDED, keys.DISCARDED_SLOT),
        (keys.FORGOTTEN, keys.FORGOTTEN_SLOT),
    }


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


@given(
    first=names, second=names, scopes=st.tuples(*[st.integers(0, keys.STORE_WIDE)] * 2)
)
def test_ids_never_share_a_key(first, second, scopes):
    same = (first, scopes[0]) == (second, scopes[1])

    key, other = keys.given_id(scopes[0], first), keys.given_id(scopes[1], second)

    assert (key == other) == same


@given(name=names | st.just("\U0001f600" * 200))
def test_the_key_of_an_id_is_short_enough_for_lmdb(name):
    """LMDB takes keys of up to 511 bytes; 200 characters may be 800."""
    assert len(keys.given_id(keys.STORE_WIDE, name)) <= 511


def test_priorities_of_both_ends_can_be_encoded():
    tops = [keys.ready_prefix(0, priority) for priority in (32767, 0, -32768)]

    assert tops == sorted(tops)
    assert {len(top) for top in tops} == {keys.QUEUE_END + 2}
