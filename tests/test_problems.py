"""What is wrong is told in one sentence, with what mends it; and nothing else is told."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from django_nobroker import Queue, mounts, problems
from django_nobroker.engine import framing, room
from django_nobroker.engine.control import FAILED
from django_nobroker.engine.roster import Membership, WorkerEntry
from django_nobroker.engine.shared import close_store, open_store
from django_nobroker.seam import Problem
from tests.doubles import SteppedClock, WatchedDisk

GIB = 1024**3


class SizedDisk(WatchedDisk):
    """A disk that says how large it is and how much is free."""

    def __init__(self):
        super().__init__()
        self.free, self.whole = 100 * GIB, 500 * GIB

    def free_bytes(self, fd):
        return self.free

    def whole_bytes(self, fd):
        return self.whole


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def disk():
    return SizedDisk()


@pytest.fixture
def store(tmp_path, clock, disk, monkeypatch):
    monkeypatch.setattr(mounts, "_mounts", list)
    store = open_store(
        tmp_path / "my jobs", clock=clock, vfs=disk, index_root=str(tmp_path)
    )
    yield store
    close_store(store)


@pytest.fixture
def queue(store):
    with Queue(store.directory, "emails") as queue:
        yield queue


@pytest.fixture
def enter(store):
    """Let workers be alive."""
    entered = []

    def one(name="w1", **values):
        entry = WorkerEntry(id=name, **values)
        entered.append(
            Membership(store.directory, entry, store.vfs, store.access, store.clock)
        )

    yield one
    for member in entered:
        member.leave()


def health(store, commands=problems.DJANGO):
    return problems.health_of(store, commands)


def only(store, commands=problems.DJANGO):
    (problem,) = health(store, commands).problems
    return problem


def test_a_new_store_is_well(store):
    assert health(store) == problems.Health(ok=True, problems=())


def test_jobs_that_are_due_and_no_worker_is_a_problem(store, queue):
    queue.enqueue_many(range(12))

    assert not health(store).ok
    assert only(store) == Problem(
        text="12 jobs are due and no worker is running.",
        hint="Start one: `manage.py runworker`.",
    )


def test_one_job_is_one_job(store, queue):
    queue.enqueue(1)

    assert only(store).text == "1 job is due and no worker is running."


def test_a_lease_that_ran_out_is_due_too(store, queue, clock):
    queue.enqueue(1)
    queue.lease_one()
    assert health(store).ok
    clock.advance(60)

    assert only(store).text == "1 job is due and no worker is running."


def test_the_console_script_is_told_with_directory_and_queue(store, queue):
    queue.enqueue(1)

    assert queue.health().problems[0].hint == (
        f"Start one: `nobroker --dir '{store.directory}' -q emails work MODULE:FUNCTION`."
    )


def test_jobs_that_wait_for_their_time_need_no_worker_yet(store, queue, clock):
    queue.enqueue(1, delay=60)

    assert health(store).ok
    clock.advance(61)
    assert not health(store).ok


def test_a_worker_that_is_alive_is_all_it_needs(store, queue, enter):
    queue.enqueue(1)
    enter()

    assert health(store).problems == ()


def test_a_worker_for_other_queues_is_none(store, queue, enter):
    queue.enqueue(1)
    enter(queues=("reports",))

    assert not health(store).ok
    assert only(store).text == (
        "1 job is due and no running worker takes the jobs of emails."
    )


def test_a_worker_that_was_killed_is_missed_at_once(store, queue):
    queue.enqueue(1)
    code = (
        "import sys, time\n"
        "from django_nobroker import Queue, Worker\n"
        "def handle(job):\n"
        "    print('on', flush=True)\n"
        "    time.sleep(600)\n"
        "with Queue(sys.argv[1], 'emails') as queue:\n"
        "    Worker(queue, handle).run()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, store.directory],
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdout.readline() == "on\n"
        queue.enqueue(2)
        assert health(store).ok
        worker.kill()
        worker.wait(30)

    assert only(store).text == "1 job is due and no worker is running."


def test_a_store_whose_sync_failed_says_so_first(store, queue):
    queue.enqueue(1)
    store.control.words[FAILED] = 1

    found = health(store)

    assert not found.ok
    assert found.problems[0].text == (
        "A sync of the log failed, so nothing is acknowledged any more."
    )
    store.control.words[FAILED] = 0


@pytest.mark.parametrize(
    ("free", "whole", "fine"),
    [
        (100 * GIB, 500 * GIB, True),
        (65 * 1024**2, 500 * GIB, True),
        (63 * 1024**2, 500 * GIB, False),
        # A small disk is not full by nature.
        (10 * 1024**2, 32 * 1024**2, True),
        (1 * 1024**2, 32 * 1024**2, False),
        (0, 500 * GIB, False),
    ],
)
def test_a_disk_that_is_nearly_full_is_a_problem(store, disk, free, whole, fine):
    disk.free, disk.whole = free, whole

    assert health(store).ok is fine
    if not fine:
        assert only(store).text.startswith("The disk is nearly full")
        assert only(store).hint.endswith("`manage.py nobroker compact`.")


def test_room_that_is_kept_for_jobs_counts_as_taken(store, queue, disk, enter):
    enter()
    queue.enqueue_many(range(1000))
    disk.free = 64 * 1024**2 + 1000 * room.PER_JOB

    assert not health(store).ok


def test_damage_is_a_problem(store, queue, tmp_path):
    job = queue.enqueue("x" * 100)
    queue.ack(queue.lease_one())
    (path,) = Path(store.directory).glob("*.log")
    data = bytearray(path.read_bytes())
    data[job.position + 150] ^= 1
    path.write_bytes(data)
    store.index.discard()

    found = health(store)

    assert not found.ok
    assert found.problems[0].text == "1 range(s) of the log are unreadable."
    assert "`manage.py nobroker verify`" in found.problems[0].hint


def test_what_was_set_aside_is_only_told(store, queue, enter):
    enter()
    (path,) = Path(store.directory).glob("*.log")
    with path.open("ab") as log:
        log.write(b"torn")
    queue.enqueue(1)

    assert health(store).ok
    assert only(store).severity == "warning"
    assert only(store).text == (
        "1 file(s) in set-aside hold bytes that a repair took out of the log."
    )


def test_a_torn_end_is_only_told(store, queue, tmp_path):
    store.torn = 7

    assert health(store).ok
    assert only(store).text == "7 bytes at the end of the log are unfinished."


def test_operations_of_a_newer_version_are_only_told(store, queue):
    end = store.end
    body = b'{"op":"teleport","at":%d,"d":%d}' % (end, end)
    (path,) = Path(store.directory).glob("*.log")
    with path.open("ab") as log:
        log.write(
            b"%08x %08d %b\n" % (framing._crc32(body, len(body)), len(body), body)
        )
    queue.enqueue(1, delay=9)

    assert health(store).ok
    assert "not know were skipped: teleport." in only(store).text


def test_a_worker_that_gives_no_sign_of_life_is_only_told(store, enter, clock):
    enter("w1")
    clock.advance(59)
    assert health(store).problems == ()
    clock.advance(40)

    assert health(store).ok
    assert only(store).text == "The worker w1 gave no sign of life for 99 seconds."


def test_a_network_file_system_is_only_told(store, monkeypatch):
    monkeypatch.setattr(mounts, "_mounts", lambda: [(store.directory, "nfs4")])

    assert health(store).ok
    assert "network file system (nfs4)" in only(store).text


def test_looking_needs_permission_to_read_only(store, queue, tmp_path, clock, disk):
    from django_nobroker.engine.store import Store

    queue.enqueue(1)
    other = tmp_path / "other"
    other.mkdir()
    reader = Store(
        store.directory, read_only=True, index_root=str(other), clock=clock, vfs=disk
    )

    assert only(reader).text == "1 job is due and no worker is running."
    reader.close()


def test_health_is_plain_values_for_json_and_cannot_be_changed(store, queue):
    queue.enqueue(1)
    found = health(store)

    plain = found.to_dict()

    assert json.loads(json.dumps(plain)) == plain
    assert plain["problems"][0]["severity"] == "error"
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.ok = True
