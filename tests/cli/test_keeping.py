"""``recover``, ``backup`` and ``rebuild-index``."""

from __future__ import annotations

import pytest

from django_nobroker import Queue


def test_a_clean_store_needs_no_recovery(nobroker, queue):
    queue.close()  # or this process goes on with the store that it made
    assert nobroker("recover") == (0, "clean, nothing was repaired.\n", "")


def test_a_torn_end_is_cut_off_and_told_ever_after(nobroker, queue, directory):
    queue.enqueue(1)
    queue.close()
    (log,) = directory.glob("*.log")
    with log.open("ab") as opened:
        opened.write(b"9f1c0a77 00000150 {")
    (directory / "control").unlink()
    first = nobroker("--json", "recover").objects[0]
    second = nobroker("recover")

    assert first["repaired"]
    assert first["bytes_cut"] == 19
    assert [one["size"] for one in first["kept"]] == [19]
    assert second.lines[0] == "clean, nothing was repaired."
    assert second.lines[1].startswith("The last repair was on ")
    assert "the unfinished end of the log" in second.out
    assert Queue(directory, read_only=True).stats().ready == 1


def test_a_backup_is_a_store_like_any_other(nobroker, queue, here):
    queue.enqueue({"to": "ada"}, job_id="a")
    ran = nobroker("backup", "copy")

    assert ran.code == 0
    assert ran.out.startswith("3 records in 1 segment")
    assert nobroker("--dir", "copy", "--json", "show", "a").objects[0]["payload"] == {
        "to": "ada"
    }
    assert nobroker("--json", "backup", "again").objects[0]["records"] == 3


def test_a_backup_never_overwrites(nobroker, queue, here):
    (here / "copy").mkdir()
    ran = nobroker("backup", "copy")

    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert "never overwrites" in ran.err
    assert nobroker("backup", "jobs/inside").code == 1
    assert nobroker("backup", "missing/parent").code == 1
    assert sorted(path.name for path in here.iterdir()) == ["copy", "jobs"]


@pytest.mark.parametrize("count", [1, 3])
def test_the_index_is_built_anew(nobroker, queue, count):
    queue.enqueue_many(range(count))
    ran = nobroker("rebuild-index")

    noun = "job" if count == 1 else "jobs"
    assert ran.out == f"The index was built anew from the log: {count} {noun}.\n"
    assert nobroker("--json", "rebuild-index").objects == [{"jobs": count}]
    assert queue.stats().ready == count
