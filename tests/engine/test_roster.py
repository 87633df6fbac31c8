"""A worker is alive as long as its lock is held, and not a moment longer."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from django_nobroker.engine import roster
from django_nobroker.engine.errors import StorageError
from django_nobroker.engine.roster import Membership, WorkerEntry
from django_nobroker.engine.vfs import Access
from tests.campaigns.test_namespaces import WORLD, refusal
from tests.faults.files import fails, lets_after


@pytest.fixture
def enter(tmp_path, files, clock):
    """Enter workers that leave when the test is over."""
    entered = []

    def one(name="w1", **values):
        entry = WorkerEntry(id=name, **values)
        entered.append(Membership(str(tmp_path), entry, files, Access(), clock))
        return entered[-1]

    yield one
    for membership in entered:
        membership.leave()


def alive(tmp_path, files):
    return roster.alive(str(tmp_path), files)


def names(tmp_path, files):
    return [one.id for one in alive(tmp_path, files)]


def test_nobody_works_on_a_store_without_a_roster(tmp_path, files):
    assert alive(tmp_path, files) == []
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_works_is_seen_with_what_it_said_of_itself(
    tmp_path, files, clock, enter
):
    enter("w1", queues=("a", "b"), exclude=("c",), concurrency=4)

    (seen,) = alive(tmp_path, files)

    assert seen == WorkerEntry(
        id="w1",
        host=os.uname().nodename,
        pid=os.getpid(),
        queues=("a", "b"),
        exclude=("c",),
        concurrency=4,
        started_at=clock.wall(),
        beat_at=clock.wall(),
    )


def test_a_worker_that_left_is_gone_with_its_file(tmp_path, files, enter):
    enter("w1").leave()

    assert alive(tmp_path, files) == []
    assert list((tmp_path / "workers").iterdir()) == []


def test_two_workers_of_one_name_are_two(tmp_path, files, enter):
    enter("w1", concurrency=1)
    enter("w1", concurrency=2)

    assert [one.concurrency for one in alive(tmp_path, files)] == [1, 2]


@pytest.mark.parametrize(
    "name", ["../x", "a/b", ".", "..", "%", "~1", "x" * 200, "ä b"]
)
def test_any_id_makes_a_file_in_the_roster_and_nowhere_else(
    tmp_path, files, enter, name
):
    enter(name)

    assert names(tmp_path, files) == [name]
    assert [path.name for path in tmp_path.iterdir()] == ["workers"]


def test_the_file_can_be_read_by_whoever_may_read_the_store_and_by_nobody_else(
    tmp_path, enter
):
    enter("w1")

    (path,) = (tmp_path / "workers").iterdir()
    assert path.stat().st_mode & 0o777 == 0o660
    assert (tmp_path / "workers").stat().st_mode & 0o777 == 0o770


def test_a_sign_of_life_is_seen_and_is_not_written_at_every_call(
    tmp_path, files, clock, enter
):
    worker = enter("w1")
    clock.advance(roster.BEAT / 2)
    worker.beat()
    files.forget()
    worker.beat()
    assert files.calls == []

    clock.advance(roster.BEAT)
    worker.beat()

    (seen,) = alive(tmp_path, files)
    assert seen.beat_at == clock.wall()


PROGRAM = """
import signal, sys
from django_nobroker.engine.roster import Membership, WorkerEntry
from django_nobroker.engine.vfs import Access, Vfs
member = Membership(sys.argv[1], WorkerEntry(id="other"), Vfs(), Access())
print("in", flush=True)
signal.pause()
"""


@pytest.fixture
def process(tmp_path):
    """A process that is in the roster."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout.readline() == "in\n"
        yield child
        child.kill()


def test_a_worker_that_was_killed_is_gone_at_once(tmp_path, files, process):
    assert names(tmp_path, files) == ["other"]

    process.send_signal(signal.SIGKILL)
    process.wait(30)

    assert names(tmp_path, files) == []
    assert [path.name for path in (tmp_path / "workers").iterdir()] == ["other"]


@pytest.mark.linux
def test_a_worker_in_another_container_is_seen_and_missed_as_any_other(tmp_path, files):
    """Its process id means nothing here, and both may be number 1."""
    reason = refusal()
    if reason:
        pytest.skip(f"PID namespaces are not permitted here: {reason}")
    command = [*WORLD, sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as world:
        assert world.stdout.readline() == "in\n"
        (seen,) = alive(tmp_path, files)
        assert (seen.id, seen.pid) == ("other", 1)

        world.kill()
        world.wait(30)
        # The world's first process dies with the one that made it, a moment later.
        deadline = time.monotonic() + 30
        while names(tmp_path, files):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_what_a_killed_worker_left_is_removed_by_the_next_one(tmp_path, process, enter):
    process.kill()
    process.wait(30)

    enter("w1")

    assert [path.name for path in (tmp_path / "workers").iterdir()] == ["w1"]


def test_a_worker_that_is_stopped_is_alive_and_its_last_sign_gets_old(
    tmp_path, files, process
):
    process.send_signal(signal.SIGSTOP)
    try:
        assert names(tmp_path, files) == ["other"]
    finally:
        process.send_signal(signal.SIGCONT)


def test_a_worker_takes_the_place_of_a_dead_one_of_its_name(
    tmp_path, files, process, enter
):
    process.kill()
    process.wait(30)

    enter("other", concurrency=7)

    (seen,) = alive(tmp_path, files)
    assert (seen.id, seen.concurrency) == ("other", 7)


def test_a_child_of_a_worker_does_not_keep_it_alive(tmp_path, files, enter):
    worker = enter("w1")
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, b"!")
        signal.pause()
        os._exit(0)
    try:
        assert os.read(reader, 1) == b"!"
        os.close(worker._fd)  # as when the parent dies
        worker._fd = -1

        assert alive(tmp_path, files) == []
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("moment", ["open", "chmod"])
def test_a_file_that_is_swept_between_opening_and_locking_is_made_again(
    tmp_path, files, enter, moment
):
    """Otherwise the worker would be alive in a file that nobody can find."""
    (tmp_path / "workers").mkdir()
    path = tmp_path / "workers" / "w1"
    files.on(
        "open",
        lets_after(path.unlink),
        where=lambda call: call.arguments[1] & os.O_CREAT,
    )

    enter("w1")

    assert names(tmp_path, files) == ["w1"]


def test_a_look_at_a_worker_that_is_just_entering_does_not_send_it_away(
    tmp_path, files, enter
):
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers" / "w1").touch()
    files.on("flock", fails(errno.EWOULDBLOCK))  # the sweep is not the one who looks
    files.on("flock", fails(errno.EWOULDBLOCK))

    enter("w1")

    assert [path.name for path in (tmp_path / "workers").iterdir()] == ["w1"]


def test_a_disk_without_room_for_a_line_keeps_no_worker_from_being_seen(
    tmp_path, files, enter
):
    files.on("write", fails(errno.ENOSPC))

    enter("w1", concurrency=3)

    (seen,) = alive(tmp_path, files)
    assert (seen.id, seen.concurrency) == ("w1", 0)


def test_a_store_where_nothing_may_be_made_says_so(tmp_path, files, enter):
    files.on("mkdir", fails(errno.EROFS))

    with pytest.raises(StorageError, match="could not be registered"):
        enter("w1")


def test_rubbish_in_the_roster_is_no_worker_and_is_swept(tmp_path, files, enter):
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers" / "rubbish").write_bytes(b"\xff\x00")
    assert alive(tmp_path, files) == []

    enter("w1")

    assert names(tmp_path, files) == ["w1"]


@pytest.mark.parametrize(
    ("entry", "queue", "served"),
    [
        (WorkerEntry(id="w"), "q", True),
        (WorkerEntry(id="w", exclude=("q",)), "q", False),
        (WorkerEntry(id="w", queues=("q",)), "q", True),
        (WorkerEntry(id="w", queues=("p",)), "q", False),
    ],
)
def test_a_worker_serves_the_queues_that_it_was_given(entry, queue, served):
    assert entry.serves(queue) is served


def test_an_entry_is_plain_values_for_json():
    assert WorkerEntry(id="w", queues=("a",)).to_dict() == {
        "id": "w",
        "host": "",
        "pid": 0,
        "queues": ["a"],
        "exclude": [],
        "concurrency": 0,
        "started_at": 0.0,
        "beat_at": 0.0,
    }
