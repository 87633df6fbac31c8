"""Reading the index within one transaction."""

from __future__ import annotations

from django_nobroker.engine import keys

from .driving import add, add_many, kill, take, take_one


def look(store, action):
    return store.look(action)


def test_entries_are_walked_both_ways_from_anywhere(store):
    jobs = [job.at for job in add_many(store, range(5))]
    start = keys.job(jobs[2])

    def positions(**options):
        return look(
            store,
            lambda tables: [
                keys.position_of(key) for key in tables.entries(keys.JOB, **options)
            ],
        )

    assert positions() == jobs
    assert positions(reverse=True) == jobs[::-1]
    assert positions(start=start) == jobs[2:]
    assert positions(reverse=True, start=start) == jobs[1::-1]


def test_an_order_without_entries_is_empty_both_ways(store):
    add(store)

    for reverse in (False, True):
        found = look(
            store, lambda tables, r=reverse: list(tables.entries(keys.DEAD, reverse=r))
        )
        assert found == []


def test_a_job_of_no_position_is_none(store):
    add(store)

    assert look(store, lambda tables: tables.row(12345)) is None


def test_a_queue_without_jobs_has_no_number(store):
    assert look(store, lambda tables: tables.queue_number("q")) is None
    assert look(store, lambda tables: tables.counts(5)) == (0,) * keys.SLOTS


def test_ids_of_queues_and_of_the_store_are_kept_apart(store):
    first = add(store, 1, job_id="a", queue="one")
    second = add(store, 2, job_id="a", queue="two", scope="store")

    def find(queue):
        number = look(store, lambda tables: tables.queue_number(queue))
        return look(store, lambda tables: tables.find("a", number))

    assert find("one")[0] == first.at
    assert find("two")[0] == second.at
    assert look(store, lambda tables: tables.known("one", "queue", "a"))[0] == first.at
    assert look(store, lambda tables: tables.known("two", "queue", "a")) is None
    assert look(store, lambda tables: tables.known("x", "store", "a"))[0] == second.at


def test_an_id_is_found_in_its_queue_only(store):
    job = add(store, queue="one")
    add(store, queue="two")
    numbers = [
        look(store, lambda tables, q=queue: tables.queue_number(q))
        for queue in ("one", "two")
    ]

    found = [
        look(store, lambda tables, n=number: tables.find(job.id, n))
        for number in numbers
    ]

    assert found[0][0] == job.at
    assert found[1] is None


def test_leases_that_ran_out_are_counted_by_queue(store, clock):
    add_many(store, range(3))
    add(store, queue="other")
    take(store, 2, queues=["q"], seconds=10.0)
    take_one(store, queues=["other"], seconds=99.0)
    clock.advance(10)

    found = look(store, lambda tables: tables.expired(clock.boot()))

    number = look(store, lambda tables: tables.queue_number("q"))
    assert found == {number: 2}


def test_each_priority_tells_its_earliest_job(store, clock):
    start = clock.wall()
    for priority in (1, -5, 1, 32767):
        add(store, priority=priority)
        clock.advance(1)
    add(store, queue="other", priority=9)
    kill(store, queues=["other"])

    found = look(store, lambda tables: list(tables.ready_priorities(0)))

    assert found == [(32767, start + 3), (1, start), (-5, start + 1)]
