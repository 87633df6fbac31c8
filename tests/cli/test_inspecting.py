"""``inspect``."""

from __future__ import annotations

import json
import threading

import pytest

from django_nobroker import Queue
from django_nobroker.cli import inspecting
from tests.cli.test_checking import damage

PATIENCE = 30.0


@pytest.fixture
def story(queue):
    """A job that fails once and is done then, beside another one."""
    queue.enqueue("other", priority=-1)
    queue.enqueue({"to": "ada"}, job_id="a")
    queue.nack(queue.lease_one(), delay=0)
    queue.ack(queue.lease_one())
    return queue


def operations(ran):
    return [one["op"] for one in ran.objects]


def test_each_record_is_a_line_with_its_position(nobroker, story, directory):
    ran = nobroker("inspect")
    (log,) = directory.glob("*.log")
    data = log.read_bytes()

    assert len(ran.lines) == data.count(b"\n")
    for line in ran.lines:
        position, *_, operation = line.split(" {")[0].split()
        at = json.loads(data[int(position) + 18 : data.index(b"\n", int(position))])
        assert (at["at"], at["op"]) == (int(position), operation)


def test_json_is_the_record_as_it_stands_in_the_log(nobroker, story, directory):
    (log,) = directory.glob("*.log")
    lines = log.read_bytes().splitlines()

    for found, line in zip(nobroker("--json", "inspect").objects, lines, strict=True):
        assert found.pop("bytes") == len(line) + 1
        assert found.pop("position") == found["at"]
        assert found == json.loads(line[18:])


def test_one_job_is_followed_through_all_its_records(nobroker, story):
    ran = nobroker("--json", "inspect", "--job", "a")

    assert operations(ran) == ["enqueue", "lease", "nack", "lease", "ack"]
    assert nobroker("--json", "inspect", "--job", "b").out == ""


def test_one_job_is_followed_through_compaction_and_purge(nobroker, story):
    story.compact()
    story.enqueue(1, job_id="b")
    story.compact()
    story.purge()

    assert operations(nobroker("--json", "inspect", "--job", "b")) == ["moved", "purge"]


def test_limit_and_from_choose(nobroker, story):
    every = nobroker("--json", "inspect").objects
    position = every[3]["position"]

    assert nobroker("--json", "inspect", "--limit", "2").objects == every[-2:]
    assert nobroker("--json", "inspect", "--from", position).objects == every[3:]
    assert (
        nobroker("--json", "inspect", "--from", position, "--limit", "2").objects
        == every[3:5]
    )
    assert operations(nobroker("--json", "inspect", "--job", "a", "--limit", "2")) == [
        "lease",
        "ack",
    ]
    assert nobroker("inspect", "--from", 10**9).out == ""


def test_a_damaged_log_is_shown_around_the_damage(nobroker, story, directory):
    story.close()
    damage(directory, b"ada")
    ran = nobroker("inspect")

    assert ran.code == 0
    assert [line for line in ran.lines if "damage: " in line] != []
    assert "nack" in ran.out
    assert {"op": None, "why": "damage"}.items() <= nobroker(
        "--json", "inspect"
    ).objects[3].items()


def test_a_log_that_no_store_opens_is_shown(nobroker, directory, queue):
    """Its first segment is missing."""
    queue.enqueue(1)
    queue.close()
    (log,) = directory.glob("*.log")
    log.rename(directory / "00000000000000001000.log")
    (directory / "control").unlink()
    ran = nobroker("inspect")

    assert nobroker("stats").code == 1
    assert (ran.code, ran.err) == (0, "")
    assert "unfinished" in ran.out


def test_follow_shows_what_is_written_from_now_on(directory, queue, command):
    queue.enqueue("before", job_id="a")
    with command("inspect", "--follow", "--json", "--limit", "1") as running:
        first = json.loads(running.stdout.readline())
        queue.enqueue("after")
        second = json.loads(running.stdout.readline())
        queue.compact()  # drops what was read so far
        queue.enqueue("later")
        seen = [json.loads(running.stdout.readline())]
        while seen[-1].get("payload") != "later":
            seen.append(json.loads(running.stdout.readline()))
        running.terminate()
        assert running.stderr.read() == ""

    assert (first["payload"], second["payload"]) == ("before", "after")
    assert "moved" in [one["op"] for one in seen]


def test_follow_waits_for_the_end_of_what_is_being_written(
    nobroker, directory, queue, monkeypatch
):
    """A record that is half written is not taken for damage."""
    queue.enqueue("whole")
    queue.close()
    (log,) = directory.glob("*.log")
    whole = log.read_bytes()
    with Queue(directory) as again:
        again.enqueue("rest")
    rest = log.read_bytes()[len(whole) :]
    log.write_bytes(whole + rest[:30])
    looks = threading.Semaphore(3)

    def sleep(_seconds):
        if not looks.acquire(blocking=False):
            raise KeyboardInterrupt
        log.write_bytes(whole + rest)

    monkeypatch.setattr(inspecting.time, "sleep", sleep)
    ran = nobroker("--json", "inspect", "--follow")

    assert ran.code == 130
    assert [one.get("payload") for one in ran.objects][-1] == "rest"
    assert None not in operations(ran)
