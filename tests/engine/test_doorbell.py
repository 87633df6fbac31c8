"""Sleepers are woken when there is work, and pipes of the dead are removed."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from django_nobroker.engine import doorbell
from django_nobroker.engine.control import ANY_QUEUE, waiting_slot
from django_nobroker.engine.doorbell import Sleeper
from django_nobroker.engine.errors import StorageError
from django_nobroker.engine.store import Store
from django_nobroker.engine.vfs import Access, Vfs
from tests.faults.files import fails, lets, lets_after

from .driving import add, add_many, look_for_work, nack, release, take_one

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def sleeper(store):
    made = []

    def make(*queues):
        one = Sleeper(
            store.directory, doorbell.slots_of(queues), store.vfs, store.access
        )
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


def pipes(store):
    return sorted(path.name for path in Path(store.directory, "doorbell").iterdir())


def fall_asleep(store, one, *queues):
    found = look_for_work(
        store,
        queues=queues or None,
        sleep_slots=one.slots,
        sleep_seconds=30.0,
    )
    assert not found.jobs


# --- ringing -------------------------------------------------------------------


def test_a_job_rings_for_its_queue(store, sleeper):
    one = sleeper("q")
    fall_asleep(store, one, "q")

    add(store)

    assert one.wait(0)
    assert not one.wait(0)


def test_a_job_of_another_queue_does_not_ring(store, sleeper):
    other = next(
        f"q{n}" for n in range(99) if waiting_slot(f"q{n}") != waiting_slot("q")
    )
    one = sleeper("q")
    fall_asleep(store, one, "q")

    add(store, queue=other)

    assert not one.wait(0)


def test_whoever_serves_every_queue_is_rung_for_any(store, sleeper):
    one = sleeper()
    assert one.slots == (ANY_QUEUE,)
    fall_asleep(store, one)

    add(store, queue="whatever")

    assert one.wait(0)


def test_everybody_who_sleeps_for_a_queue_is_rung(store, sleeper):
    sleepers = [sleeper("q") for _ in range(3)] + [sleeper()]
    for one in sleepers:
        fall_asleep(store, one, "q")

    add(store)

    assert all(one.wait(0) for one in sleepers)


def test_nobody_is_rung_when_nobody_sleeps(store, files):
    files.forget()

    add(store)

    assert files.count("listdir") == 0


def test_a_bell_is_rung_once_until_somebody_sleeps_again(store, sleeper, files):
    one = sleeper("q")
    fall_asleep(store, one, "q")
    add(store)
    files.forget()

    add(store)

    assert files.count("listdir") == 0


@pytest.mark.parametrize("way", ["batch", "nack", "release", "relaxed"])
def test_whatever_makes_a_job_due_rings(store, sleeper, way):
    one = sleeper("q")
    if way in ("nack", "release"):
        add(store)
        job = take_one(store)
        fall_asleep(store, one, "q")
        (nack if way == "nack" else release)(store, job)
    else:
        fall_asleep(store, one, "q")
        if way == "batch":
            add_many(store, [1, 2])
        else:
            add(store, durable=False)

    assert one.wait(0)


def test_a_sleeper_whose_time_is_over_is_not_rung(store, sleeper, clock, files):
    one = sleeper("q")
    fall_asleep(store, one, "q")
    clock.advance(31)
    files.forget()

    add(store)

    assert files.count("listdir") == 0


def test_a_bell_rings_only_when_the_job_is_durable(store, sleeper, files):
    one = sleeper("q")
    fall_asleep(store, one, "q")
    seen = []
    files.on("fdatasync", lets_after(lambda: seen.append(one.wait(0))))

    add(store)

    assert seen == [False]
    assert one.wait(0)


@pytest.mark.parametrize("durable", [True, False])
def test_a_write_that_was_refused_does_not_use_the_bell_up(
    store, sleeper, files, durable
):
    """The next job has to wake the sleeper all the same."""
    one = sleeper("q")
    fall_asleep(store, one, "q")
    files.on("write", fails(errno.ENOSPC))
    with pytest.raises(StorageError):
        add_many(store, [1, 2], durable=durable)

    add(store, durable=durable)

    assert one.wait(0)


# --- sleeping --------------------------------------------------------------------


def test_a_sleeper_can_be_woken_by_its_own_process(sleeper):
    one = sleeper("q", "another")
    timer = threading.Timer(0.01, one.wake)
    timer.start()

    assert one.wait(20)
    timer.join()


def test_a_sleeper_in_another_process_wakes_long_before_it_would_look_again(tmp_path):
    """It would sleep for 30 seconds."""
    directory, root = str(tmp_path / "jobs"), str(tmp_path)
    store = Store(directory, index_root=root)
    code = f"""
import time
from django_nobroker.engine.doorbell import Sleeper, slots_of
from django_nobroker.engine.store import Store
from tests.engine.driving import look_for_work
store = Store({directory!r}, index_root={root!r})
one = Sleeper(store.directory, slots_of(["q"]), store.vfs, store.access)
look_for_work(store, queues=["q"], sleep_slots=one.slots, sleep_seconds=30.0)
print("asleep", flush=True)
began = time.monotonic()
rung = one.wait(30.0)
print(rung, time.monotonic() - began < 15, len(look_for_work(store).jobs), flush=True)
one.close()
store.close()
"""
    child = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "asleep\n"
        time.sleep(0.05)
        add(store)
        assert child.stdout.readline() == "True True 1\n"
        assert child.wait(20) == 0
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        store.close()


# --- pipes ---------------------------------------------------------------------------


def test_pipes_have_the_mode_asked_for_and_go_with_their_sleeper(store):
    access = Access(file_mode=0o640)
    one = Sleeper(store.directory, (1, 2), Vfs(), access)

    paths = list(Path(store.directory, "doorbell").iterdir())
    assert len(paths) == 2
    for path in paths:
        assert stat.S_ISFIFO(path.stat().st_mode)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    one.close()
    one.close()
    assert pipes(store) == []


def test_pipes_of_dead_processes_are_removed_by_who_finds_them(store, sleeper):
    one = sleeper("q")
    (name,) = pipes(store)
    stale = Path(store.directory, "doorbell", f"{name[:2]}-{'0' * 16}")
    os.mkfifo(stale)
    fall_asleep(store, one, "q")

    add(store)

    assert pipes(store) == [name]
    assert one.wait(0)


def test_a_pipe_taken_for_a_dead_ones_while_it_is_made_is_made_again(store, files):
    """Between its making and its opening it has no reader either."""
    slots = doorbell.slots_of(["q"])
    files.on(
        "open",
        lets(lambda: doorbell.ring(store.directory, slots, Vfs())),
        where=lambda call: "doorbell" in call.arguments[0],
    )

    one = Sleeper(store.directory, slots, files, store.access)

    doorbell.ring(store.directory, slots, Vfs())
    assert one.wait(0)
    one.close()


def test_a_disk_without_room_for_a_pipe_does_not_stop_a_sleeper(store, files):
    files.on("mkfifo", fails(errno.ENOSPC))

    one = Sleeper(store.directory, (1,), files, store.access)

    one.wake()
    assert one.wait(0)
    one.close()


def test_ringing_where_nobody_ever_slept_is_no_error(tmp_path):
    doorbell.ring(str(tmp_path), [1, 2], Vfs())


def test_a_full_pipe_is_no_error(store, sleeper):
    one = sleeper("q")
    for _ in range(70_000):
        one.wake()

    doorbell.ring(store.directory, one.slots, store.vfs)

    assert one.wait(0)
    assert not one.wait(0)
