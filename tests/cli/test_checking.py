"""``health`` and ``verify``."""

from __future__ import annotations

import shlex

import pytest

from django_nobroker.engine.control import FAILED
from django_nobroker.engine.roster import Membership, WorkerEntry
from django_nobroker.engine.vfs import Vfs


def damage(directory, word):
    """Flip a byte of the record that holds a word."""
    (log,) = directory.glob("*.log")
    data = bytearray(log.read_bytes())
    data[data.index(word)] ^= 1
    log.write_bytes(data)


def test_a_store_where_nothing_is_wrong_is_healthy(nobroker, queue):
    assert nobroker("health") == (0, "ok: nothing is wrong.\n", "")
    assert nobroker("--json", "health").objects == [{"ok": True, "problems": []}]


def test_jobs_and_no_worker_is_told_with_the_command_that_mends_it(
    nobroker, queue, here
):
    (here / "cli_mender.py").write_text("def handle(job): pass\n")
    queue.enqueue(1)
    ran = nobroker("health")

    assert ran.code == 1
    text, command = ran.out.rstrip(".`\n").split("`")
    assert text == "error: 1 job is due and no worker is running. Start one: "
    mending = shlex.split(command.replace("MODULE:FUNCTION", "cli_mender:handle"))
    assert nobroker(*mending[1:], "--max-jobs", "1").code == 0
    assert nobroker("health").code == 0


def test_a_worker_that_is_alive_makes_it_healthy(nobroker, queue):
    queue.enqueue(1)
    store = queue.opened()
    entry = WorkerEntry(id="w", queues=("default",))
    member = Membership(store.directory, entry, store.vfs, store.access)
    try:
        assert nobroker("health").code == 0
    finally:
        member.leave()
    assert nobroker("health").code == 1


def test_a_failed_store_is_told(nobroker, queue):
    queue.opened().control.words[FAILED] = 1
    ran = nobroker("health")

    assert ran.code == 1
    assert ran.lines[0].startswith("error: A sync of the log failed")


def test_a_disk_that_is_nearly_full_is_told(nobroker, queue, monkeypatch):
    monkeypatch.setattr(Vfs, "free_bytes", lambda self, fd: 1 << 20)
    ran = nobroker("health")

    assert ran.code == 1
    assert "The disk is nearly full" in ran.out
    assert "`nobroker --dir ./jobs compact`" in ran.out


def test_a_warning_is_told_and_is_no_alarm(nobroker, queue, directory):
    (directory / "set-aside").mkdir()
    (directory / "set-aside" / "00000000000000000005-0").write_bytes(b"x")
    ran = nobroker("health")

    assert ran.code == 0
    assert ran.lines[0].startswith("warning: ")
    assert ran.lines[-1] == "ok: nobody has to act now."


def test_a_sound_log_is_verified(nobroker, queue):
    queue.enqueue_many(range(5))
    ran = nobroker("verify")

    assert ran.code == 0
    assert ran.out.startswith("ok: ")
    assert "5 jobs" in ran.out
    assert ran.err == ""
    assert nobroker("--json", "verify").objects[0]["ok"]


def test_damage_is_told_and_is_an_error(nobroker, queue, directory):
    queue.enqueue("first")
    queue.enqueue("second")
    queue.close()
    damage(directory, b"first")
    ran = nobroker("verify")

    assert ran.code == 1
    assert ran.lines[0].startswith("1 error in ")
    assert "damage" in ran.lines[2]
    (found,) = nobroker("--json", "verify").objects
    assert not found["ok"]
    assert found["errors"]


@pytest.mark.parametrize("command", ["stats", "list", "dlq", "health", "inspect"])
def test_a_damaged_log_can_be_looked_at(nobroker, queue, directory, command):
    queue.enqueue("first")
    queue.enqueue("second")
    queue.close()
    damage(directory, b"first")
    (directory / "control").unlink()
    ran = nobroker(command)

    assert ran.err == ""
    assert ran.out
