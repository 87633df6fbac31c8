"""A compaction changes nothing but the size of the log."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from zlib import crc32

import pytest

from django_nobroker.engine import (
    backup,
    claim,
    compaction,
    history,
    listing,
    settle,
    verification,
)
from django_nobroker.engine.errors import (
    CompactionError,
    JobNotFoundError,
    StorageError,
)
from django_nobroker.engine.locks import Maintenance
from django_nobroker.engine.past import past
from django_nobroker.engine.record import Drop, Enqueue, Extend, Moved, Nack
from django_nobroker.engine.retention import Retention, Terms
from tests.faults.files import fails

from .driving import (
    TIMEOUT,
    ack,
    add,
    add_many,
    everything,
    fill,
    first_of,
    flip,
    held,
    kill,
    lasting,
    log_of,
    lose_control_page,
    nack,
    payloads,
    records,
    release,
    row,
    segments,
    take,
    take_one,
)

EVERYTHING = Retention(queues={})
NOTHING_ENDED = Retention(queues={"q": Terms(results=0.0, dead=None, ids=0.0)})


def compact(store, kept=EVERYTHING, **options):
    return compaction.compact(store, kept, timeout=TIMEOUT, **options)


def test_what_is_kept_is_as_it_was(store, open_store, clock):
    for _ in range(3):
        fill(store)
    before, texts = lasting(store), payloads(store)

    done = compact(store)

    assert lasting(store) == before
    assert payloads(store) == texts
    assert done.moved == done.kept == len(before["rows"])
    assert done.dropped == 0
    another = open_store(handle="another", clock=clock)
    assert everything(another) == everything(store)
    assert verification.verify(store).ok


def test_after_a_power_cut_it_is_as_it_was(store, open_store, clock):
    fill(store)
    compact(store)
    before = everything(store)
    store.close()
    lose_control_page(store.directory)

    again = open_store(handle="fresh", clock=clock)

    assert not again.recovery.repaired
    assert {**everything(again), "epoch": 0} == {**before, "epoch": 0}


def test_jobs_that_ended_leave_nothing(store):
    add(store, "kept", delay=1000.0)
    for _ in range(50):
        add(store, "x" * 2000)
        ack(store, take_one(store), "y" * 500)

    done = compact(store, NOTHING_ENDED)

    assert done.dropped == 50
    assert done.kept == done.moved == 1
    assert done.bytes_after == len(log_of(store.directory)) < 2000
    assert done.bytes_before > 125_000
    assert payloads(store) == {"ready": ["kept"]}
    assert first_of(store.directory) == store.log.first > 125_000


def test_the_totals_of_a_queue_outlive_its_jobs(store, open_store, clock):
    fill(store)
    before = everything(store)["totals"]
    compact(store, NOTHING_ENDED)
    compact(store, NOTHING_ENDED)

    assert everything(store)["totals"] == before
    another = open_store(handle="another", clock=clock)
    assert everything(another)["totals"] == before


def test_a_lease_is_settled_after_the_job_was_moved(store):
    add_many(store, range(4))
    first, second, third, fourth = take(store, 4)

    compact(store)

    ack(store, first)
    nack(store, second)
    release(store, third)
    assert settle.extend(store, held(fourth), 90.0, timeout=TIMEOUT).until > 0
    assert verification.verify(store).ok


def test_a_lease_of_a_moved_job_runs_out_as_before(store, clock):
    add(store)
    job = take_one(store)
    compact(store)
    clock.advance(31.0)

    (again,) = take(store)

    assert again.position == job.position
    assert again.row.attempts == 2


def test_waiting_times_go_on(store, clock):
    add(store, "later", delay=50.0)
    add(store, "again")
    nack(store, take_one(store), delay=20.0)
    compact(store)

    clock.advance(21.0)
    assert [one.row.id for one in take(store, 5)] == [
        one["id"] for one in everything(store)["rows"].values() if one["attempts"] == 2
    ]
    clock.advance(29.0)
    assert [one.row.attempts for one in take(store, 5)] == [1]


def test_result_error_and_past_of_a_job_stay_readable(store):
    add(store, "good")
    good = take_one(store)
    ack(store, good, {"answer": 42})
    add(store, "bad")
    nack(store, take_one(store), error="first")
    bad = take_one(store)
    nack(store, bad, error="second")

    def seen():
        found = []
        for job in (good, bad):
            one = row(store, job.position)
            told = [
                (type(record), record.t, getattr(record, "error", None))
                for record in history.backwards(store, one)
            ]
            found.append(
                (history.result(store, one), history.failure(store, one), told)
            )
        return found

    before = seen()
    compact(store)
    compact(store)

    assert seen() == before
    assert before[0][0] == b'{"answer":42}'
    assert before[1][1][0].message == "second"


def test_of_a_long_past_the_newest_part_and_the_error_stay(store, monkeypatch):
    monkeypatch.setattr("django_nobroker.engine.past._RECORDS", 6)
    add(store, "tried", max_attempts=1000)
    job = take_one(store)
    nack(store, job, error="old")
    for _ in range(20):
        job = take_one(store)
        release(store, job)

    compact(store)

    one = row(store, job.position)
    moved = store.log.record_at(one.data)[0]
    assert isinstance(moved, Moved)
    assert moved.omitted
    kept = past(store, job.position, one).records
    assert len(kept) == 8
    kinds = [type(record) for record in history.backwards(store, one)]
    assert kinds[-1] is Enqueue
    assert Nack in kinds
    assert history.failure(store, one)[0].message == "old"
    assert row(store, job.position).attempts == 1

    compact(store)

    again = row(store, job.position)
    assert store.log.record_at(again.data)[0].omitted
    assert past(store, job.position, again).records == kept


def test_heartbeats_are_not_kept(store):
    add(store)
    job = take_one(store)
    for seconds in range(40, 240):
        settle.extend(store, held(job), float(seconds), timeout=TIMEOUT)

    compact(store)

    kinds = {type(one) for one in history.backwards(store, row(store, job.position))}
    assert Extend not in kinds
    assert len(log_of(store.directory)) < 2000


def test_an_error_behind_very_many_heartbeats_stays(store, monkeypatch):
    monkeypatch.setattr("django_nobroker.engine.past.LONGEST", 20)
    add(store, "payload")
    nack(store, take_one(store), error="old")
    job = take_one(store)
    for seconds in range(40, 80):
        settle.extend(store, held(job), float(seconds), timeout=TIMEOUT)

    for _ in range(2):
        compact(store)

        one = row(store, job.position)
        assert history.failure(store, one)[0].message == "old"
        assert history.payload(store, one) == b'"payload"'
    ack(store, job)


def test_a_job_tried_very_often_becomes_small(store):
    add(store, "tried", max_attempts=30_000)
    for _ in range(3000):
        nack(store, take_one(store), error="no " * 20)

    done = compact(store)

    assert done.bytes_before > 1_000_000
    assert done.bytes_after < 100_000
    assert payloads(store) == {"ready": ["tried"]}


def test_a_given_id_blocks_until_its_time_is_over(store, clock):
    kept = Retention(queues={"q": Terms(results=0.0, ids=100.0)})
    add(store, "payload", job_id="mine", scope="queue")
    done = take_one(store)
    ack(store, done)
    print_before = history.fingerprint(store, done.position, row(store, done.position))

    assert compact(store, kept).dropped == 1
    assert compact(store, kept).dropped == 0

    forgotten = row(store, done.position)
    assert history.payload(store, forgotten) is None
    assert history.fingerprint(store, done.position, forgotten) == print_before
    assert store.look(lambda tables: tables.find("mine")) is None
    assert store.look(lambda tables: list(listing.walk(tables))) == []
    assert store.look(lambda tables: tables.known("q", "queue", "mine")) is not None

    clock.advance(101.0)
    compact(store, kept)

    assert everything(store)["rows"] == {}
    assert everything(store)["ids"] == {}
    add(store, "anew", job_id="mine", scope="queue")
    assert payloads(store) == {"ready": ["anew"]}


def test_a_blocked_id_outlives_the_segments_before_it_was_forgotten(open_store, clock):
    """What forgets a job does not tell all of it: the job is written again, too."""
    kept = Retention(queues={"q": Terms(results=0.0, ids=100.0)})
    store = open_store(segment_size=1000, clock=clock)
    add(store, job_id="mine", scope="queue")
    ack(store, take_one(store))
    while len(segments(store.directory)) < 3:
        add(store, "filling")
    assert compact(store, kept, roll=False).segments > 0
    before = everything(store)
    assert len(before["ids"]) == 1

    another = open_store(handle="another", clock=clock)

    assert everything(another) == before
    assert verification.verify(store).ok


def test_dead_letters_stay_unless_their_time_is_over(store, clock):
    add(store, "dead")
    at = kill(store)
    clock.advance(1000.0)
    compact(store, NOTHING_ENDED)
    assert payloads(store) == {"dead": ["dead"]}

    compact(store, Retention(queues={"q": Terms(dead=999.0)}))

    assert everything(store)["rows"] == {}
    with pytest.raises(JobNotFoundError):
        settle.ack(
            store,
            settle.Held(at, claim.Token(1, 1)),
            result=None,
            durable=True,
            timeout=TIMEOUT,
        )


def test_without_a_new_segment_only_full_ones_go(open_store, clock):
    store = open_store(segment_size=4000, clock=clock)
    for payload in range(60):
        add(store, payload)
        ack(store, take_one(store))
    active = segments(store.directory)[-1]

    done = compact(store, NOTHING_ENDED, roll=False)

    assert segments(store.directory)[0] == active
    assert done.segments > 3


def test_a_log_with_nothing_to_drop_is_left_alone(store):
    compact(store)
    before = log_of(store.directory)

    done = compact(store, roll=False)

    assert log_of(store.directory) == before
    assert (done.segments, done.moved, done.dropped) == (0, 0, 0)


def test_it_stops_when_asked_and_goes_on_another_time(store, monkeypatch):
    monkeypatch.setattr(compaction, "_SLICE", 5)
    add_many(store, range(40))
    before = lasting(store)
    asked = iter([False, False, True])

    done = compact(store, stopped=lambda: next(asked, True))

    assert done.segments == 0
    assert 0 < done.moved < 40
    assert lasting(store) == before
    assert compact(store).segments > 0
    assert lasting(store) == before


def test_progress_is_told_in_bytes(store, monkeypatch):
    monkeypatch.setattr(compaction, "_SLICE", 5)
    add_many(store, range(20))
    told = []

    compact(store, progress=lambda done, total: told.append((done, total)))

    assert told[0][0] == 0
    assert [one for one, _ in told] == sorted(one for one, _ in told)
    assert len({total for _, total in told}) == 1
    assert all(done <= total for done, total in told)


def test_jobs_that_change_meanwhile_are_moved_as_they_are_then(store, monkeypatch):
    add_many(store, range(10))
    real, met = compaction.past, []

    def interrupted(*arguments):
        if len(met) < 5:
            met.append(take_one(store))
        return real(*arguments)

    monkeypatch.setattr(compaction, "past", interrupted)

    compact(store)

    assert len(everything(store)["rows"]) == 10
    for job in met:
        ack(store, job)
    assert verification.verify(store).ok


def test_others_go_on_while_it_works(open_store, store, clock, monkeypatch):
    monkeypatch.setattr(compaction, "_SLICE", 3)
    other = open_store(handle="other", clock=clock)
    add_many(store, range(100))
    over = threading.Event()
    worked = []

    def work():
        while not over.is_set():
            add(other, "more", durable=False)
            job = take_one(other)
            ack(other, job, durable=False)
            worked.append(job.position)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            compact(store)
    finally:
        over.set()
        thread.join()

    assert len(worked) == len(set(worked)) > 0
    assert len(everything(store)["rows"]) == 100 + len(worked)
    for part, value in everything(store).items():
        assert everything(other)[part] == value, part
    assert verification.verify(other).ok


def test_a_reader_of_a_dropped_segment_looks_again(open_store, store, clock):
    other = open_store(handle="other", clock=clock)
    add(store, "kept")
    ours = row(other, next(iter(everything(other)["rows"])))
    assert history.payload(other, ours) == b'"kept"'

    compact(store)

    assert history.payload(other, ours) == b'"kept"'
    assert len(list(history.backwards(other, ours))) == 1


@pytest.mark.parametrize("kind", ["shared", "exclusive"])
def test_it_refuses_while_somebody_reads_the_whole_log(store, clock, kind):
    add(store)
    before = log_of(store.directory)
    with (
        getattr(Maintenance(store.directory, store.vfs, clock), kind)(),
        pytest.raises(CompactionError, match="just now"),
    ):
        compact(store)
    assert log_of(store.directory) == before
    compact(store)


@pytest.mark.parametrize("next_one", ["compaction", "opening"])
def test_a_segment_that_could_not_be_removed_goes_with_the_next(
    open_store, clock, files, next_one
):
    store = open_store(clock=clock, vfs=files, segment_size=1500)
    for _ in range(3):
        fill(store)
    before, old = lasting(store), segments(store.directory)
    files.on("unlink", fails(errno.EACCES), where=lambda call: ".log" in str(call))
    with pytest.raises(StorageError, match="cannot be removed"):
        compact(store)
    assert segments(store.directory)[0] == old[0]
    assert lasting(store) == before

    if next_one == "compaction":
        compact(store)
    else:
        store.close()
        lose_control_page(store.directory)
        store = open_store(clock=clock)
        before["epoch"] += 1

    assert not set(old) & set(segments(store.directory))
    assert lasting(store) == before
    assert verification.verify(store).ok


@pytest.mark.parametrize("page", ["kept", "lost"])
def test_operations_of_a_newer_version_forbid_it(open_store, store, clock, page):
    """Also one that stands behind the published end as yet."""
    add(store)
    store.close()
    if page == "lost":
        lose_control_page(store.directory)
    path = segments(store.directory)[-1]
    data = path.read_bytes()
    body = b'{"op":"pause","at":%d,"d":0}' % len(data)

    with path.open("ab") as file:
        file.write(b"%08x %08d %b\n" % (crc32(body, len(body)), len(body), body))
    again = open_store(clock=clock)

    for _ in range(2):
        with pytest.raises(CompactionError, match="pause"):
            compact(again)

    assert b'"op":"pause"' in log_of(again.directory)
    assert payloads(again) == {"ready": [1]}


def test_fields_of_a_newer_version_are_kept(store):
    """A field says something of a record that this version knows, so it moves with it."""
    end = store.end
    body = (
        b'{"op":"enqueue","at":%d,"d":%d,"id":"%032x","queue":"q","t":1.0,'
        b'"max":3,"colour":"green","payload":1}' % (end, end, end)
    )
    with segments(store.directory)[-1].open("ab") as file:
        file.write(b"%08x %08d %b\n" % (crc32(body, len(body)), len(body), body))
    add(store, 2)

    compact(store)
    compact(store)

    assert first_of(store.directory) > end
    assert b'"colour":"green"' in log_of(store.directory)
    assert payloads(store) == {"ready": [1, 2]}


def test_a_compacted_store_is_backed_up(store, open_store, clock, tmp_path):
    fill(store)
    compact(store, NOTHING_ENDED)
    before = everything(store)
    target = tmp_path / "copy"

    backup.backup(store, str(target))

    copied = open_store(str(target), handle="copied", clock=clock)
    assert {**everything(copied), "epoch": 0} == {**before, "epoch": 0}
    assert not copied.recovery.repaired


def test_damage_in_the_head_is_set_aside_before_it_goes(store, open_store, clock):
    lost = add(store, "lost")
    add(store, "kept")
    store.close()
    path = segments(store.directory)[0]
    data = bytearray(path.read_bytes())
    data[lost.at + 30] ^= 1
    path.write_bytes(data)
    again = open_store(handle="again", clock=clock)
    assert payloads(again) == {"ready": ["kept"]}

    compact(again)

    kept = b"".join(
        path.read_bytes()
        for path in sorted(Path(again.directory, "set-aside").iterdir())
    )
    assert b"lost" in kept
    assert payloads(again) == {"ready": ["kept"]}
    assert verification.verify(again).ok


def test_the_log_says_where_it_counts_from(store):
    fill(store)
    compact(store)

    drops = [one for one in records(store.directory) if type(one).__name__ == "Drop"]

    assert [one.before for one in drops] == [first_of(store.directory)] * 2


@pytest.mark.parametrize("number", [0, 1])
def test_no_flipped_bit_of_what_says_so_hides_the_log(store, open_store, clock, number):
    """Without it a log whose first segments are gone would look like one that lost them."""
    fill(store)
    compact(store)
    store.close()
    drop = [one for one in records(store.directory) if isinstance(one, Drop)][number]
    path, newest = (
        segments(store.directory)[-1],
        segments(store.directory)[-1].read_bytes(),
    )
    start = drop.at - int(path.stem)
    for place in range(start, newest.index(b"\n", start) + 1):
        path.write_bytes(newest)
        flip(store.directory, place + int(path.stem), bit=1 << place % 8)
        lose_control_page(store.directory)
        clock.restart()

        again = open_store(clock=clock, read_only=True, handle="again")

        assert again.log.first == drop.before
        assert len(payloads(again)) > 1
        again.close()
        open_store(clock=clock, handle="writing").close()


def test_it_describes_itself(store):
    add(store)
    ack(store, take_one(store))

    done = compact(store, NOTHING_ENDED)

    assert done.describe() == (
        f"compacted {done.bytes_before} -> {done.bytes_after} bytes "
        f"({100 - 100 * done.bytes_after / done.bytes_before:.1f}% reclaimed), "
        "kept 0 jobs, dropped 1 completed"
    )
    assert done.to_dict()["dropped"] == 1
