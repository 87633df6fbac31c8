"""The index is what a replay of the log gives, or a difference is told."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import msgspec
import pytest

from django_nobroker.engine import keys, states, verification
from django_nobroker.engine.store import Store

from .driving import (
    add,
    add_many,
    counts,
    everything,
    fill,
    flip,
    row,
    snapshot,
    take_one,
)


def verify(store, **options):
    return verification.verify(store, **options)


def tamper(store, action):
    """Change the index behind everybody's back."""
    store.look(lambda tables: None)
    changes = store.index.begin_changes()
    action(changes)
    changes.flush()
    changes.txn.commit()


def test_an_index_that_followed_the_log_is_as_a_replay_gives_it(store):
    fill(store)

    found = verify(store)

    assert found.ok
    assert (found.errors, found.more, found.mend) == ((), 0, "")
    assert found.jobs == 9
    assert found.position == store.end
    assert found.log.ok
    assert found.log.records > 9


def test_queues_may_be_numbered_otherwise(open_store, store):
    for queue in ("a", "b", "a"):
        add(store, queue=queue, job_id=f"{queue}{store.end}", scope="queue")
    add(store, queue="c", job_id="everywhere", scope="store")

    def swap(changes):
        """Number the queues anew, everywhere."""
        numbers = {0: 1, 1: 0, 2: 2}
        entries = list(changes.txn.cursor())
        for key, _ in entries:
            if (
                key[:1] in (keys.READY, keys.COUNTS, keys.ID)
                and key[1:5] != b"\xff" * 4
            ):
                changes.txn.delete(key)
        for key, value in entries:
            if (
                key[:1] in (keys.READY, keys.COUNTS, keys.ID)
                and key[1:5] != b"\xff" * 4
            ):
                number = numbers[int.from_bytes(key[1:5], "big")]
                changes.txn.put(key[:1] + number.to_bytes(4, "big") + key[5:], value)
            elif key[:1] == keys.JOB:
                one = msgspec.msgpack.decode(value, type=states.Row)
                one.queue = numbers[one.queue]
                changes.txn.put(key, msgspec.msgpack.encode(one))
        changes.names.queues = ["b", "a", "c"]
        changes.txn.put(keys.NAMES, msgspec.msgpack.encode(changes.names))

    tamper(store, swap)
    assert counts(store, "a") == {"ready": 2}

    assert verify(store).errors == ()


def test_whether_a_waiting_time_was_noticed_to_be_over_makes_no_difference(
    store, clock
):
    add(store, delay=10.0)
    store.look(lambda tables: None)
    clock.advance(20.0)

    assert verify(store).ok
    store.look(lambda tables: None)
    assert verify(store).ok


def test_a_job_that_the_index_calls_due_too_early_is_a_difference(store):
    job = add(store, delay=1000.0)
    tamper(store, lambda changes: changes.make_due(job.at))

    (one,) = verify(store).errors

    assert one.job == job.id
    assert "another timer" in one.text


def test_a_field_that_differs_is_named_with_its_job(store):
    job, _ = add_many(store, range(2))
    tamper(store, lambda changes: setattr(changes.row(job.at), "attempts", 7))

    found = verify(store)

    (one,) = found.errors
    assert not found.ok
    assert (one.kind, one.job, one.start) == ("index", job.id, job.at)
    assert one.text == "the index has another attempts"
    assert found.mend == "rebuild-index"
    assert found.log.ok


def test_a_job_that_is_missing_in_the_index_is_a_difference(store):
    job, other = add_many(store, range(2))

    def lose(changes):
        changes.txn.delete(keys.job(job.at))
        changes.txn.delete(keys.order(row(store, other.at), job.at))

    tamper(store, lose)

    texts = {one.text for one in verify(store).errors if one.job == job.id}

    assert "it is in the log but not in the index" in texts


def test_a_job_that_only_the_index_has_is_a_difference(store):
    job = add(store)

    def invent(changes):
        invented = msgspec.structs.replace(changes.row(job.at), id="nobody's")
        changes.txn.put(keys.job(job.at + 1), msgspec.msgpack.encode(invented))

    tamper(store, invent)

    texts = {one.text for one in verify(store).errors if one.job == "nobody's"}

    assert texts == {
        "it is in the index but not in the log",
        "it is missing in the order of its state",
    }


def test_an_entry_in_the_wrong_order_is_a_difference(store):
    job = add(store)
    take_one(store)
    tamper(
        store,
        lambda changes: changes.txn.put(
            keys.queue_prefix(keys.DEAD, 0) + bytes(8) + job.at.to_bytes(8, "big"), b""
        ),
    )

    (one,) = verify(store).errors

    assert (one.job, one.text) == (job.id, "it is in an order where it does not belong")


def test_a_wrong_counter_is_a_difference(store):
    add(store)
    tamper(
        store,
        lambda changes: changes.txn.put(
            keys.counts(0), (7).to_bytes(8, "little") + bytes(8 * 12)
        ),
    )

    (one,) = verify(store).errors

    assert "the counters of the queue q say (7, 0" in one.text


@pytest.mark.parametrize("change", ["lost", "other", "invented"])
def test_a_wrong_id_is_a_difference(store, change):
    add(store, job_id="a", scope="queue")
    other = add(store)

    def forget(changes):
        if change == "lost":
            changes.txn.delete(keys.given_id(0, "a"))
        else:
            name = "a" if change == "other" else "b"
            changes.txn.put(keys.given_id(0, name), other.at.to_bytes(8, "big"))

    tamper(store, forget)

    found = verify(store)

    assert not found.ok
    assert "id" in found.errors[0].text


def test_damage_of_the_log_is_found_too_and_a_new_index_does_not_mend_it(
    store, directory, open_store
):
    job = add(store)
    add(store)
    flip(directory, job.at + 60)

    found = verify(open_store(handle="two"))

    assert not found.ok
    assert [one.kind for one in found.errors] == ["damage"]
    assert not found.log.ok
    assert found.mend == ""


def test_differences_beyond_the_budget_are_counted(store):
    jobs = add_many(store, range(9))

    def change(changes):
        for job in jobs:
            changes.row(job.at).attempts = 7

    tamper(store, change)

    found = verify(store, max_errors=4)

    assert (len(found.errors), found.more) == (4, 5)


def test_writers_go_on_while_an_index_is_verified(store):
    fill(store)
    end = store.end

    found = verify(store, progress=lambda done, total: add(store))

    assert found.ok
    assert end < found.position <= store.end


def test_verifying_needs_permission_to_read_only_and_changes_nothing(
    store, directory, open_store
):
    fill(store)
    store.close()
    before = snapshot(directory)

    assert verify(open_store(read_only=True, handle="two")).ok
    assert snapshot(directory) == before


def test_a_report_is_plain_values_for_json_and_cannot_be_changed(store):
    found = verify(store)

    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["log"]["ok"] is True
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.ok = False


# --- building the index anew ---------------------------------------------------------


def test_a_new_index_mends_what_differs(store):
    job = fill(store)
    before = everything(store)
    tamper(store, lambda changes: setattr(changes.row(job.at), "attempts", 7))

    assert verification.rebuild_index(store) == 9

    assert verify(store).ok
    assert everything(store) == before


PROGRAM = """
import sys
from django_nobroker.engine.store import Store
store = Store(sys.argv[1], index_root=sys.argv[2], read_only=True)
for line in sys.stdin:
    print(store.look(lambda tables: tables.row(int(line))).attempts, flush=True)
"""


def test_every_process_that_shares_the_index_gets_the_new_one(tmp_path, directory):
    """A worker that runs on would keep a replica that was only renamed away."""
    root = tmp_path / "index"
    root.mkdir()
    store = Store(directory, index_root=str(root))
    job = fill(store)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, directory, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:

        def seen():
            other.stdin.write(f"{job.at}\n")
            other.stdin.flush()
            return int(other.stdout.readline())

        assert seen() == 1
        tamper(store, lambda changes: setattr(changes.row(job.at), "attempts", 7))
        assert seen() == 7

        verification.rebuild_index(store)

        assert seen() == 1
    store.close()


def test_an_index_that_is_not_there_yet_is_built(store, open_store, clock):
    fill(store)

    assert verification.rebuild_index(open_store(handle="two", clock=clock)) == 9


def test_progress_is_told_up_to_the_end(store):
    for _ in range(3):
        add_many(store, ["x" * 500_000] * 2)
    seen = []

    verification.rebuild_index(store, progress=lambda *far: seen.append(far))

    assert len(seen) > 1
    assert seen == sorted(seen)
    assert seen[-1] == (store.end, store.end)


def test_jobs_are_enqueued_and_taken_while_the_index_is_built(store):
    add_many(store, ["x" * 500_000] * 4)
    taken = []

    def meanwhile(done, total):
        add(store, "new")
        taken.append(take_one(store))

    verification.rebuild_index(store, progress=meanwhile)

    assert len({job.position for job in taken}) == len(taken) > 1
    assert verify(store).ok
