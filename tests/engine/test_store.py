"""Opening, sharing, forking and closing a store."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from django_nobroker.engine.control import SEGMENT
from django_nobroker.engine.errors import (
    CorruptLogError,
    QueueClosedError,
    StorageError,
)
from django_nobroker.engine.store import Store
from django_nobroker.engine.vfs import Access
from tests.faults.files import FaultyFiles, fails

from .driving import (
    TIMEOUT,
    ack,
    add,
    add_many,
    counts,
    lose_control_page,
    payloads,
    segments,
    snapshot,
    take,
    take_one,
)


def descriptors():
    return {
        int(name): os.readlink(f"/proc/self/fd/{name}")
        for name in os.listdir("/proc/self/fd")
        if os.path.lexists(f"/proc/self/fd/{name}")
    }


def those_of(root):
    return {fd for fd, path in descriptors().items() if path.startswith(str(root))}


# --- descriptors ---------------------------------------------------------------


def inherited_of(open_store, store, clock, tmp_path):
    """Return the files of a busy store that a program started by exec would get."""
    add(store)
    ack(store, take_one(store))
    counts(store)
    reader = open_store(clock=clock, handle="two", read_only=True)
    payloads(reader)
    found = those_of(tmp_path)
    assert len(found) >= 5
    return {
        os.path.basename(descriptors()[fd])
        for fd in found
        if not fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    }


@pytest.mark.linux
def test_no_descriptor_is_inherited_over_exec(open_store, store, clock, tmp_path):
    assert inherited_of(open_store, store, clock, tmp_path) == set()


@pytest.mark.linux
def test_closing_gives_every_descriptor_back(open_store, directory, clock, tmp_path):
    for _ in range(2):
        store = open_store(clock=clock, segment_size=500)
        for n in range(12):
            add(store, n)
        ack(store, take_one(store))
        payloads(store)
        store.close()

    left = {os.path.basename(descriptors()[fd]) for fd in those_of(tmp_path)}
    assert left <= {"control"}  # mapped until nobody refers to the store any more


@pytest.mark.linux
def test_an_opening_that_fails_leaves_no_descriptor_behind(
    open_store, directory, clock, tmp_path
):
    store = open_store(clock=clock, segment_size=500)
    for n in range(20):
        add(store, n)
    store.close()
    clock.restart()
    segments(directory)[1].unlink()
    before = those_of(tmp_path)

    for read_only in (False, True):
        with pytest.raises(CorruptLogError):
            open_store(clock=clock, read_only=read_only)

    assert len(those_of(tmp_path)) <= len(before)


# --- closing -----------------------------------------------------------------------


def test_a_closed_store_says_so(store):
    add(store)
    job = take_one(store)
    store.close()
    store.close()

    for action in (
        lambda: add(store),
        lambda: add(store, durable=False),
        lambda: take(store),
        lambda: ack(store, job),
        lambda: counts(store),
        lambda: store.commit(1),
    ):
        with pytest.raises(QueueClosedError):
            action()


def test_closing_while_threads_are_at_work_harms_nobody(open_store, directory, clock):
    store = open_store(clock=clock)
    errors, ids = [], []

    def work():
        try:
            while True:
                ids.append(add(store).id)
                counts(store)
        except QueueClosedError:
            pass
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while len(ids) < 20:
        pass
    store.close()
    for thread in threads:
        thread.join(20)

    assert errors == []
    again = open_store(clock=clock, handle="two")
    assert len(payloads(again)["ready"]) >= len(ids)
    assert not again.recovery.repaired


# --- files ----------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_files_have_the_mode_asked_for_whatever_the_umask(
    open_store, directory, clock, umask
):
    before = os.umask(umask)
    try:
        store = open_store(
            clock=clock, access=Access(file_mode=0o640), segment_size=500
        )
        for n in range(8):
            add(store, n)
    finally:
        os.umask(before)

    files = [path for path in Path(directory).iterdir() if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o640}
    assert len(files) >= 4
    assert stat.S_IMODE(Path(directory).stat().st_mode) == 0o750


def test_directories_above_the_store_are_made(open_store, tmp_path, clock):
    store = open_store(str(tmp_path / "a" / "b" / "jobs"), clock=clock)

    add(store)

    assert payloads(store) == {"ready": [1]}


def test_a_path_that_is_a_file_is_told(open_store, tmp_path, clock):
    (tmp_path / "file").write_text("text")

    with pytest.raises(StorageError):
        open_store(str(tmp_path / "file"), clock=clock)


# --- looking only ------------------------------------------------------------------------


class ReadOnlyFiles(FaultyFiles):
    """A disk that is mounted for reading only."""

    def __init__(self):
        super().__init__()
        opened, read_only = self.open, fails(errno.EROFS)

        def open_to_read(path, flags, *mode):
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                read_only(None, None)
            return opened(path, flags, *mode)

        self.open = open_to_read
        for name in ("mkdir", "rename", "unlink", "mkfifo", "chmod"):
            self.on(name, read_only, again=True)


@pytest.mark.parametrize("control", ["kept", "lost"])
def test_a_store_on_a_disk_for_reading_only_can_be_looked_at_and_no_more(
    open_store, store, clock, control
):
    add_many(store, ["a", "b"])
    store.close()
    if control == "lost":
        lose_control_page(store.directory)
    before = snapshot(store.directory)

    with pytest.raises(StorageError) as caught:
        open_store(clock=clock, vfs=ReadOnlyFiles())
    reader = open_store(clock=clock, vfs=ReadOnlyFiles(), read_only=True)

    assert caught.value.errno == errno.EROFS
    assert payloads(reader) == {"ready": ["a", "b"]}
    reader.close()
    assert snapshot(store.directory) == before
    assert payloads(open_store(clock=clock)) == {"ready": ["a", "b"]}


def test_a_disk_for_reading_only_gets_no_store(open_store, directory):
    with pytest.raises(StorageError) as caught:
        open_store(vfs=ReadOnlyFiles())

    assert caught.value.errno == errno.EROFS
    assert not os.path.exists(directory)


def test_windows_is_told_that_it_has_no_stores(open_store, directory, monkeypatch):
    monkeypatch.setattr("sys.platform", "win32")

    with pytest.raises(StorageError, match="Linux or macOS"):
        open_store()

    assert not os.path.exists(directory)


def test_of_many_who_make_a_store_at_once_one_does(open_store, directory):
    together = threading.Barrier(6)

    def make(number):
        together.wait(TIMEOUT)
        made = open_store(handle=f"{number}")
        return add(made, number).at

    with ThreadPoolExecutor(6) as threads:
        positions = set(threads.map(make, range(6)))

    assert len(positions) == 6
    assert len(segments(directory)) == 1
    found = payloads(open_store(handle="another"))
    assert {name: sorted(jobs) for name, jobs in found.items()} == {
        "ready": list(range(6))
    }


def test_a_store_opened_for_looking_changes_nothing(open_store, store, clock):
    add(store, "a")
    store.close()
    before = snapshot(store.directory)

    reader = open_store(clock=clock, read_only=True)

    assert payloads(reader) == {"ready": ["a"]}
    assert snapshot(store.directory) == before


def test_a_reader_sees_what_a_writer_writes_meanwhile(open_store, store, clock):
    reader = open_store(clock=clock, read_only=True, handle="two")
    add(store, "a")
    assert payloads(reader) == {"ready": ["a"]}

    add(store, "b")

    assert payloads(reader) == {"ready": ["a", "b"]}


@pytest.mark.parametrize("control", ["old", "lost"])
def test_a_torn_end_is_told_and_not_mended_by_looking(
    open_store, store, clock, control
):
    add(store, "whole")
    store.close()
    clock.restart()
    if control == "lost":
        lose_control_page(store.directory)
    with segments(store.directory)[0].open("ab") as file:
        file.write(b"torn end")
    before = snapshot(store.directory)

    reader = open_store(clock=clock, read_only=True)

    assert payloads(reader) == {"ready": ["whole"]}
    assert reader.torn == 8
    assert snapshot(store.directory) == before


def test_a_directory_without_a_log_cannot_be_looked_at(open_store, tmp_path, clock):
    (tmp_path / "empty").mkdir()

    with pytest.raises(CorruptLogError):
        open_store(str(tmp_path / "empty"), clock=clock, read_only=True)

    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize("trouble", ["another boot", "a copy", "garbage"])
def test_a_control_page_of_elsewhere_is_not_believed(
    open_store, store, clock, tmp_path, trouble
):
    import shutil

    add(store, "a")
    store.close()
    directory = store.directory
    if trouble == "another boot":
        clock.restart()
    elif trouble == "a copy":
        directory = str(tmp_path / "copy")
        shutil.copytree(store.directory, directory)
    else:
        page = Path(directory, "control")
        page.write_bytes(page.read_bytes()[:8] + os.urandom(4088))

    again = open_store(directory, clock=clock, handle="two")

    assert payloads(again) == {"ready": ["a"]}
    assert again.control.words[SEGMENT] == 0
    add(again, "b")
    assert payloads(again) == {"ready": ["a", "b"]}


# --- forking -------------------------------------------------------------------------------


def fork(action):
    """Run ``action`` in a child and return its process id."""
    with warnings.catch_warnings():
        # Forking beside threads is what is being tried here.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    status = 1
    try:
        action()
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


def wait_for(children):
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_forked_children_enqueue_with_the_store_of_their_parent(open_store, directory):
    store = Store(directory, index_root=str(Path(directory).parent))
    add(store, "parent")
    counts(store)

    def enqueue():
        for n in range(500):
            add(store, n, durable=n % 50 == 0)

    wait_for([fork(enqueue) for _ in range(8)])

    assert counts(store) == {"ready": 4001}
    add(store, "parent")
    store.close()
    again = open_store()
    assert counts(again) == {"ready": 4002}
    assert not again.recovery.repaired
    assert not Path(directory, "set-aside").exists()


def test_children_forked_while_a_thread_enqueues_are_served(open_store, directory):
    store = Store(directory, index_root=str(Path(directory).parent))
    stop = threading.Event()
    made, errors = [], []

    def busy():
        try:
            while not stop.is_set():
                made.append(add(store, "thread", durable=len(made) % 2 == 0))
                counts(store)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()

    def enqueue():
        for n in range(50):
            add(store, n, durable=n % 10 == 0)
        assert counts(store)["ready"] >= 50

    for _ in range(5):
        wait_for([fork(enqueue) for _ in range(4)])
    stop.set()
    for thread in threads:
        thread.join(20)

    assert errors == []
    expected = len(made) + 5 * 4 * 50
    assert counts(store) == {"ready": expected}
    store.close()
    again = open_store()
    assert counts(again) == {"ready": expected}
    assert not again.recovery.repaired


def test_a_child_leaves_the_index_of_its_parent_alone(open_store, directory):
    store = Store(directory, index_root=str(Path(directory).parent))
    add(store, "a")
    job = take_one(store)

    def work():
        ack(store, job)
        add(store, "child")
        assert counts(store) == {"ready": 1, "done": 1}
        store.close()

    wait_for([fork(work)])

    assert counts(store) == {"ready": 1, "done": 1}
    ack(store, take_one(store))
    assert counts(store) == {"done": 2}
    store.close()
