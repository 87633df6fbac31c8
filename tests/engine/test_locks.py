"""One writer at a time, whatever dies, and every trouble by its name."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading

import pytest

from django_nobroker.engine import enqueue
from django_nobroker.engine.errors import (
    LockTimeoutError,
    QueueClosedError,
    StorageError,
)
from django_nobroker.engine.locks import Maintenance, StoreLock
from django_nobroker.engine.vfs import Access
from tests.faults.files import FaultyFiles, fails, raises_after

from .driving import add, counts, log_of, new


@pytest.fixture
def lock(tmp_path, files):
    made = StoreLock(str(tmp_path), files, Access())
    yield made
    if not made.closed:
        made.close()


def other(tmp_path):
    return StoreLock(str(tmp_path), FaultyFiles(), Access())


def test_a_lock_excludes_another_handle_until_it_is_given_back(tmp_path, lock):
    second = other(tmp_path)
    with lock.held(1), pytest.raises(LockTimeoutError):
        second.acquire(0.05)

    with second.held(1):
        pass
    second.close()


def test_a_lock_excludes_another_thread(lock):
    inside = []

    def run():
        try:
            lock.acquire(0.05)
        except LockTimeoutError as error:
            inside.append(error)

    with lock.held(1):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join(10)

    assert len(inside) == 1
    assert "more than 0.05 seconds" in str(inside[0])


def test_the_timeout_names_the_file(tmp_path, lock):
    second = other(tmp_path)
    with lock.held(1), pytest.raises(LockTimeoutError, match="lock is held"):
        second.acquire(0.01)
    second.close()


def test_a_lock_that_becomes_free_in_time_is_taken(tmp_path, lock):
    second = other(tmp_path)
    lock.acquire(1)
    timer = threading.Timer(0.05, lock.release)
    timer.start()

    with second.held(20):
        pass

    timer.join()
    second.close()


def test_the_kernel_gives_the_lock_of_a_killed_process_back(tmp_path, lock):
    code = (
        "import fcntl, os, sys, time\n"
        f"fd = os.open({str(tmp_path / 'lock')!r}, os.O_RDWR | os.O_CREAT)\n"
        "fcntl.flock(fd, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "time.sleep(60)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LockTimeoutError):
            lock.acquire(0.05)
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()

    with lock.held(20):
        pass


def test_a_process_that_stands_still_with_the_lock_costs_others_an_error(store):
    """It is stopped in the midst of a write: nothing of anybody else is written."""
    add(store)
    before = log_of(store.directory)
    code = (
        "import fcntl, os, signal\n"
        f"fd = os.open({store.directory + '/lock'!r}, os.O_RDWR)\n"
        "fcntl.flock(fd, fcntl.LOCK_EX)\n"
        "os.kill(os.getpid(), signal.SIGSTOP)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as holder:
        os.waitid(os.P_PID, holder.pid, os.WSTOPPED)
        with pytest.raises(LockTimeoutError):
            enqueue.place(store, [new(store)], durable=True, timeout=0.05)
        assert log_of(store.directory) == before
        assert counts(store) == {"ready": 1}
        os.kill(holder.pid, signal.SIGCONT)

    add(store)
    assert counts(store) == {"ready": 2}


def test_a_file_system_without_locks_is_told_at_once_as_what_it_is(lock, files):
    files.on("flock", fails(errno.ENOLCK))

    with pytest.raises(StorageError) as caught:
        lock.acquire(1000)

    assert caught.value.errno == errno.ENOLCK
    assert files.count("flock") == 1
    with lock.held(1):
        pass


def test_an_error_while_waiting_is_told_as_what_it_is(tmp_path, lock, files):
    second = other(tmp_path)
    with second.held(1):
        files.on("flock", lambda call, happen: happen())
        files.on("flock", fails(errno.EIO))
        with pytest.raises(StorageError) as caught:
            lock.acquire(1000)

    assert caught.value.errno == errno.EIO
    second.close()


def test_a_lock_file_that_cannot_be_made_is_told(tmp_path, files):
    lock = StoreLock(str(tmp_path / "nowhere"), files, Access())

    with pytest.raises(StorageError):
        lock.acquire(1)
    with pytest.raises(StorageError):
        lock.acquire(1)
    lock.close()


def test_a_closed_lock_says_so(lock):
    lock.close()

    with pytest.raises(QueueClosedError):
        lock.acquire(1)


def test_a_lock_is_opened_once_and_never_inherited_over_exec(lock, files):
    for _ in range(3):
        with lock.held(1):
            pass

    assert files.count("open") <= 2
    assert not os.get_inheritable(lock._fd)


def test_a_child_has_a_lock_of_its_own(lock):
    """The description of the parent would be shared, and the lock with it."""
    with lock.held(1):
        child = os.fork()
        if not child:
            lock.after_fork()
            try:
                lock.acquire(0.05)
            except LockTimeoutError:
                os._exit(0)
            os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        # What the child closed did not unlock the parent's file.
        fd = os.open(lock._path, os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(fd)


def test_a_signal_while_the_lock_is_taken_leaves_it_free(tmp_path, lock, files):
    files.on("flock", raises_after(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        lock.acquire(1)

    with lock.held(1):
        pass
    second = other(tmp_path)
    with second.held(1):
        pass
    second.close()


def test_an_operation_tells_that_the_lock_is_held(open_store, store, clock):
    second = open_store(clock=clock, handle="two")
    with second.lock.held(1), pytest.raises(LockTimeoutError):
        enqueue.place(store, [new(store)], durable=False, timeout=0.05)

    add(store)


# --- the maintenance lock ----------------------------------------------------------


@pytest.fixture
def maintenance(tmp_path, files, clock):
    return Maintenance(str(tmp_path), files, clock)


def test_many_may_keep_the_files_at_once(tmp_path, maintenance):
    with maintenance.shared(), Maintenance(str(tmp_path), FaultyFiles()).shared(0):
        pass


def test_files_that_somebody_keeps_are_not_removed(maintenance):
    with maintenance.shared(), maintenance.exclusive() as alone:
        assert not alone

    with maintenance.exclusive() as alone:
        assert alone


def test_one_at_a_time_removes_files(maintenance):
    with maintenance.exclusive() as first, maintenance.exclusive() as second:
        assert (first, second) == (True, False)


def test_a_refused_removal_takes_nothing_from_who_holds_it(maintenance):
    with maintenance.exclusive() as first:
        with maintenance.exclusive() as second:
            assert not second
        with maintenance.exclusive() as third:
            assert not third
        assert first


def test_keeping_the_files_waits_for_a_removal_under_way(tmp_path):
    maintenance = Maintenance(str(tmp_path), FaultyFiles())
    kept = threading.Event()

    def keep():
        with maintenance.shared(30):
            kept.set()

    with maintenance.exclusive() as alone:
        assert alone
        thread = threading.Thread(target=keep)
        thread.start()
        assert not kept.wait(0.1)
    assert kept.wait(30)
    thread.join(30)


def test_keeping_the_files_is_given_up_after_its_timeout(tmp_path):
    maintenance = Maintenance(str(tmp_path), FaultyFiles())
    with (
        maintenance.exclusive(),
        pytest.raises(LockTimeoutError, match=r"more than 0\.02 seconds"),
        maintenance.shared(0.02),
    ):
        pass


def test_the_maintenance_lock_needs_no_permission_to_write(tmp_path, maintenance):
    before = sorted(tmp_path.iterdir())
    tmp_path.chmod(0o500)
    try:
        with maintenance.shared():
            assert sorted(tmp_path.iterdir()) == before
        with maintenance.exclusive() as alone:
            assert alone
    finally:
        tmp_path.chmod(0o700)


def test_the_maintenance_lock_of_a_process_that_died_is_free(tmp_path, maintenance):
    code = (
        "import sys, signal\n"
        "from django_nobroker.engine.locks import Maintenance\n"
        "from django_nobroker.engine.vfs import Vfs\n"
        "with Maintenance(sys.argv[1], Vfs()).exclusive() as alone:\n"
        "    print(alone, flush=True)\n"
        "    signal.pause()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "True\n"
        with maintenance.exclusive() as alone:
            assert not alone
        child.send_signal(signal.SIGKILL)
        child.wait(30)

    with maintenance.exclusive() as alone:
        assert alone


def test_a_child_forked_meanwhile_does_not_keep_the_maintenance_lock(maintenance):
    with maintenance.shared():
        child = os.fork()
        if not child:
            signal.pause()
            os._exit(0)
    try:
        with maintenance.exclusive() as alone:
            assert alone
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_store_that_is_gone_cannot_be_locked_for_maintenance(tmp_path):
    with (
        pytest.raises(StorageError, match="could not be locked"),
        Maintenance(str(tmp_path / "none"), FaultyFiles()).exclusive(),
    ):
        pass


def test_a_file_system_without_locks_is_told_by_name(tmp_path, files, maintenance):
    files.on("flock", fails(errno.ENOLCK))
    with pytest.raises(StorageError) as caught, maintenance.shared():
        pass

    assert caught.value.errno == errno.ENOLCK
