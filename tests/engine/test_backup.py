"""A copy of a store in use is whole, checked, and never in the place of another."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from django_nobroker.engine import backup
from django_nobroker.engine.control import FAILED
from django_nobroker.engine.errors import (
    DirectoryExistsError,
    NotLeasedError,
    StorageError,
)
from django_nobroker.engine.locks import Maintenance
from tests.faults.files import fails, lets, lets_after, raises, writes_short

from .driving import (
    ack,
    add,
    add_many,
    counts,
    everything,
    fill,
    flip,
    log_of,
    lose_control_page,
    payloads,
    segments,
    snapshot,
    take_one,
)


@pytest.fixture
def target(tmp_path):
    (tmp_path / "backups").mkdir()
    return tmp_path / "backups" / "monday"


def copy_of(store, target, **options):
    return backup.backup(store, target, **options)


def left_in(target):
    return sorted(path.name for path in target.parent.iterdir())


def test_a_copy_holds_every_byte_of_the_log(store, directory, target):
    fill(store)
    end = store.end

    made = copy_of(store, target)

    assert made.ok
    assert log_of(target) == log_of(directory)
    assert (made.end, made.log_bytes, made.segments) == (end, end, 1)
    assert made.directory == str(target)
    assert made.errors == ()
    assert left_in(target) == ["monday"]


def test_a_copy_is_a_store_like_its_origin_when_that_is_gone(
    store, directory, target, open_store, clock
):
    fill(store)
    before = everything(store)

    copy_of(store, target)
    store.close()
    shutil.rmtree(directory)

    again = open_store(str(target), handle="two", clock=clock)
    found = everything(again)
    assert not again.recovery.repaired
    assert {**found, "epoch": 0} == {**before, "epoch": 0}
    add(again, "more")
    ack(again, take_one(again))


def test_a_copy_of_many_segments_is_whole(open_store, directory, target):
    store = open_store(segment_size=1500)
    for _ in range(5):
        fill(store)

    made = copy_of(store, target)

    names = [path.name for path in segments(directory)]
    assert [path.name for path in segments(target)] == names
    assert made.segments == len(names) > 5
    assert log_of(target) == log_of(directory)


def test_only_the_log_and_what_was_set_aside_are_copied(store, target, directory):
    fill(store)
    with segments(directory)[0].open("ab") as log:
        log.write(b"torn")
    add(store)
    (kept,) = Path(directory, "set-aside").iterdir()

    copy_of(store, target)

    assert sorted(path.name for path in target.iterdir()) == [
        "00000000000000000000.log",
        "set-aside",
    ]
    assert (target / "set-aside" / kept.name).read_bytes() == b"torn"


def test_a_copy_and_its_origin_are_used_side_by_side_and_share_nothing(
    store, target, open_store, clock
):
    """They have one id; what tells them apart is the directory."""
    add(store, "before")
    made = copy_of(store, target)

    copied = open_store(str(target), clock=clock)  # the same place for indexes
    add(copied, "copy")
    add(store, "origin")

    assert made.store == store.control.store_id.hex() == copied.control.store_id.hex()
    assert payloads(store) == {"ready": ["before", "origin"]}
    assert payloads(copied) == {"ready": ["before", "copy"]}


def test_a_token_of_the_origin_does_not_fit_what_is_leased_in_the_copy(
    store, target, open_store, clock
):
    add(store)
    copy_of(store, target)
    copied = open_store(str(target), handle="two", clock=clock)
    there = take_one(copied)
    here = take_one(store)

    with pytest.raises(NotLeasedError):
        ack(copied, here)
    ack(copied, there)
    ack(store, here)


# --- where nothing may be written ------------------------------------------------------


@pytest.mark.parametrize("kind", ["directory", "empty", "file", "link"])
def test_nothing_is_ever_overwritten(store, target, kind):
    if kind == "file":
        target.write_text("mine")
    elif kind == "link":
        target.symlink_to("nowhere")
    else:
        target.mkdir()
    if kind == "directory":
        (target / "mine").write_text("mine")
    before = snapshot(target.parent)

    with pytest.raises(DirectoryExistsError, match="never overwrites") as caught:
        copy_of(store, target)

    assert isinstance(caught.value, FileExistsError)
    assert caught.value.errno == errno.EEXIST
    assert snapshot(target.parent) == before


def test_a_parent_that_is_missing_is_not_made(store, tmp_path):
    with pytest.raises(StorageError, match="is not there"):
        copy_of(store, tmp_path / "none" / "monday")

    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("inside", [".", "copy", "set-aside/copy"])
def test_a_store_is_not_copied_into_itself(store, directory, inside):
    before = snapshot(directory)

    with pytest.raises(ValueError, match="into the store itself"):
        copy_of(store, Path(directory) / inside / "x")

    assert snapshot(directory) == before


def test_a_link_into_the_store_is_seen_through(store, directory, tmp_path):
    (tmp_path / "link").symlink_to(directory)

    with pytest.raises(ValueError, match="into the store itself"):
        copy_of(store, tmp_path / "link" / "monday")


# --- several at once ---------------------------------------------------------------------


def test_of_two_copies_that_race_for_a_name_one_wins(store, target, files):
    add(store)
    rivals = []
    files.on("rename", lets(lambda: rivals.append(copy_of(store, target))))

    with pytest.raises(DirectoryExistsError):
        copy_of(store, target)

    assert len(rivals) == 1
    assert left_in(target) == ["monday"]


def test_two_copies_in_threads_give_one_copy(store, target):
    fill(store)
    outcomes = []

    def race():
        try:
            copy_of(store, target)
        except DirectoryExistsError:
            outcomes.append("lost")
        else:
            outcomes.append("won")

    threads = [threading.Thread(target=race) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(outcomes) == ["lost", "lost", "lost", "won"]
    assert left_in(target) == ["monday"]


PRODUCER = """
import sys
from django_nobroker import Queue
with Queue(sys.argv[1], "q", index_directory=sys.argv[2]) as queue:
    print("go", flush=True)
    number = 0
    while True:
        queue.enqueue_many([[number, part] for part in range(7)])
        number += 1
"""


def test_a_copy_made_under_writers_never_holds_half_a_batch(
    open_store, directory, target, tmp_path
):
    store = open_store(segment_size=30_000)
    add(store)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", PRODUCER, directory, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        for writer in writers:
            assert writer.stdout.readline() == "go\n"
        made = [copy_of(store, target.with_name(f"copy-{n}")) for n in range(4)]
    finally:
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.wait(30)
            writer.stdout.close()

    assert all(one.ok for one in made)
    assert [one.end for one in made] == sorted(one.end for one in made)
    for one in made:
        copied = open_store(one.directory, handle="two")
        assert counts(copied)["ready"] % 7 == 1
        assert not copied.recovery.repaired


def test_writers_go_on_while_a_store_is_copied(store, target, open_store, clock):
    add(store, "before")

    copy_of(store, target, progress=lambda done, total: add(store, "meanwhile"))

    assert counts(store)["ready"] > 1
    copied = open_store(str(target), handle="two", clock=clock)
    assert payloads(copied) == {"ready": ["before"]}


def test_no_segment_is_removed_while_a_store_is_copied(store, directory, target, files):
    add(store)
    seen = []

    def compact():
        with Maintenance(directory, files).exclusive() as alone:
            seen.append(alone)

    files.on("fsync", lets(compact), where=lambda call: True)
    copy_of(store, target)
    compact()

    assert seen == [False, True]


def test_what_is_copied_is_durable_in_its_origin(store, target, files):
    add(store, durable=False)

    made = copy_of(store, target)

    assert store.control.words[9] >= made.end


# --- trouble -----------------------------------------------------------------------------


def test_a_full_disk_leaves_nothing_behind_and_another_try_is_whole(
    store, target, files
):
    fill(store)
    files.on("write", writes_short(100))
    files.on("write", fails(errno.ENOSPC))

    with pytest.raises(StorageError) as caught:
        copy_of(store, target)

    assert caught.value.errno == errno.ENOSPC
    assert left_in(target) == []
    assert copy_of(store, target).ok


@pytest.mark.parametrize("call", ["mkdir", "chmod", "fsync", "rename"])
def test_any_refusal_leaves_nothing_behind(store, target, files, call):
    fill(store)
    files.on(
        call,
        fails(errno.EIO),
        where=lambda one: "backups" in str(one) or call == "fsync",
    )

    with pytest.raises(StorageError):
        copy_of(store, target)

    assert left_in(target) == []
    assert not store.failed


def test_a_refusal_after_the_copy_got_its_name_leaves_nothing_behind(
    store, target, files
):
    files.on(
        "rename",
        lets_after(lambda: files.on("fsync", fails(errno.EIO))),
    )

    with pytest.raises(StorageError):
        copy_of(store, target)

    assert left_in(target) == []


def test_an_interrupt_leaves_nothing_behind(store, target, files):
    fill(store)
    files.on("rename", raises(KeyboardInterrupt()))

    with pytest.raises(KeyboardInterrupt):
        copy_of(store, target)

    assert left_in(target) == []


def test_a_disk_that_keeps_something_else_than_was_written_is_found_out(
    store, target, files
):
    add(store, "x" * 100)

    def corrupt():
        (made,) = target.parent.iterdir()
        flip(made, store.end - 50)

    files.on(
        "fsync", lets_after(corrupt), where=lambda _: list(target.parent.iterdir())
    )

    with pytest.raises(StorageError, match="not what was written"):
        copy_of(store, target)

    assert left_in(target) == []


def test_damage_of_the_origin_is_copied_and_told(store, directory, target):
    job = add(store, "x" * 100)
    add(store)
    flip(directory, job.at + 60)

    made = copy_of(store, target)

    assert not made.ok
    (one,) = made.errors
    assert (one.kind, one.start) == ("damage", job.at)
    assert log_of(target) == log_of(directory)


def test_a_store_that_has_failed_is_copied_up_to_what_is_known_durable(store, target):
    add(store)
    durable = store.end
    add(store, durable=False)
    store.control.words[FAILED] = 1

    made = copy_of(store, target)

    assert made.end == durable


def test_a_store_that_is_open_for_reading_only_can_be_copied(
    store, directory, target, open_store
):
    fill(store)
    store.close()
    lose_control_page(directory)
    with segments(directory)[0].open("ab") as log:
        log.write(b"torn")
    before = snapshot(directory)

    made = copy_of(open_store(read_only=True, handle="two"), target)

    assert made.ok
    assert snapshot(directory) == before
    assert not log_of(target).endswith(b"torn")


def test_the_copy_s_files_are_for_whom_the_origin_s_are(store, directory, target):
    fill(store)
    Path(directory).chmod(0o2750)
    (path,) = segments(directory)
    path.chmod(0o640)
    old = os.umask(0)
    try:
        copy_of(store, target)
    finally:
        os.umask(old)

    assert target.stat().st_mode & 0o7777 == 0o2750
    assert segments(target)[0].stat().st_mode & 0o777 == 0o640


def test_a_group_that_is_not_ours_gets_nothing(store, target, files):
    files.on("chown", fails(errno.EPERM), again=True)

    copy_of(store, target)

    assert target.stat().st_mode & 0o077 == 0
    assert segments(target)[0].stat().st_mode & 0o077 == 0


def test_progress_is_told_up_to_the_end(store, target):
    for _ in range(3):
        add_many(store, ["x" * 500_000] * 2)
    seen = []

    copy_of(store, target, progress=lambda done, total: seen.append((done, total)))

    assert len(seen) > 3
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] == 2 * store.end


def test_no_index_of_the_copy_stays_behind(store, target, tmp_path):
    fill(store)
    store.look(lambda tables: None)
    before = sorted(path.name for path in (tmp_path / "index-one").rglob("*"))

    copy_of(store, target)

    assert sorted(path.name for path in (tmp_path / "index-one").rglob("*")) == before


def test_a_report_is_plain_values_for_json_and_cannot_be_changed(store, target):
    made = copy_of(store, target)

    plain = made.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.ok = False


KILLED = """
import signal, sys
from django_nobroker.engine import backup
from django_nobroker.engine.store import Store
from django_nobroker.engine.vfs import Vfs

directory, target, root, place = sys.argv[1:]

class Files(Vfs):
    seen = 0
    def stop(self, name):
        self.seen += name in place
        if f"{name}-{self.seen}" == place:
            print("here", flush=True)
            signal.pause()
    def __getattribute__(self, name):
        found = object.__getattribute__(self, name)
        if name not in ("mkdir", "write", "fsync", "chmod", "rename"):
            return found
        def call(*arguments):
            self.stop(f"before {name}")
            answer = found(*arguments)
            self.stop(f"after {name}")
            return answer
        return call

store = Store(directory, index_root=root, vfs=Files())
backup.backup(store, target)
"""


@pytest.mark.parametrize(
    "place",
    [
        "after mkdir-1",
        "before write-1",
        "after write-1",
        "before fsync-1",
        "after fsync-2",
        "before rename-1",
        "after rename-1",
    ],
)
def test_a_copy_whose_process_is_killed_is_whole_or_not_there(
    directory, target, tmp_path, open_store, place
):
    store = open_store()
    fill(store)
    before = log_of(directory)
    arguments = [directory, str(target), str(tmp_path), place]
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, *arguments], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "here\n"
        child.kill()
        child.wait(30)

    if place == "after rename-1":
        assert log_of(target) == before
    else:
        assert not target.exists()
        assert copy_of(store, target).ok
    copied = open_store(str(target), handle="two")
    assert everything(copied)["rows"] == everything(store)["rows"]
    with Maintenance(directory, store.vfs).exclusive() as alone:
        assert alone
