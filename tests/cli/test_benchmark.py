"""``bench``."""

from __future__ import annotations

import signal
import time

from tests.cli.conftest import snapshot

PATIENCE = 30.0


def test_each_row_is_told_with_its_ratio_to_the_raw_disk(nobroker, here):
    found = nobroker("--json", "bench", "--seconds", "0.01").objects
    names = [one["name"] for one in found]

    assert names[0] == "raw write + fdatasync"
    assert found[0]["ratio"] == 1
    assert {"enqueue", "lease + ack", "compact, per job"} <= set(names)
    for one in found:
        assert one["count"] > 0
        assert one["per_second"] > 0
        assert one["ratio"] > 0
    assert list(here.iterdir()) == []


def test_the_store_is_left_alone_and_nothing_stays(nobroker, queue, directory, here):
    queue.enqueue(1)
    before = snapshot(directory)
    indexes = sorted(here.parent.joinpath("index").rglob("*.mdb"))
    ran = nobroker("bench", "--seconds", "0.01")

    assert ran.code == 0
    assert len(ran.lines) == 10
    assert f"Beside the store, in {here}." in ran.err
    assert snapshot(directory) == before
    assert [path.name for path in here.iterdir()] == ["jobs"]
    assert sorted(here.parent.joinpath("index").rglob("*.mdb")) == indexes


def test_ctrl_c_leaves_nothing_behind(here, command):
    with command("bench", "--seconds", "5") as running:
        deadline = time.monotonic() + PATIENCE
        while not list(here.glob(".jobs.bench-*/raw")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE)

    assert (running.returncode, out, err) == (130, "", "")
    assert list(here.iterdir()) == []
