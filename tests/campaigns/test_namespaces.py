"""Two containers, both with PID 1, work on one store."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.campaigns.conducting import (
    Actor,
    acknowledged,
    chance_of,
    check,
    drain,
    judge,
    kill_at_random,
)

WORLD = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def refusal():
    """Why no PID namespace can be made here; empty if it can."""
    if shutil.which("unshare") is None:
        return "there is no unshare command"
    done = subprocess.run(
        [*WORLD, "true"], capture_output=True, text=True, check=False, timeout=60
    )
    return "" if done.returncode == 0 else done.stderr.strip() or "unshare failed"


@pytest.mark.linux
@pytest.mark.parametrize(
    "kills", [pytest.param(4), pytest.param(40, marks=pytest.mark.campaign)]
)
def test_worlds_that_are_killed_lose_and_double_nothing(tmp_path, kills):
    """One enqueues, the other works; each kill ends a whole world, and a new one begins."""
    reason = refusal()
    if reason:
        pytest.skip(f"PID namespaces are not permitted here: {reason}")
    seed = int.from_bytes(os.urandom(4), "big")
    store = tmp_path / "jobs"
    with (
        Actor("producer", store, "a", scratch=tmp_path, prefix=WORLD) as producer,
        Actor("consumer", store, scratch=tmp_path, prefix=WORLD) as worker,
    ):
        kill_at_random([producer, worker], kills, chance_of(seed))
        # The worker that is alive now works for a world that came after its own.
        producer.wait_for("acked")
        worker.wait_for("ended")
    last = drain(store, tmp_path)

    found = check(store, tmp_path)

    ended = {
        line[1]
        for actor in (worker, last)
        for line in actor.lines
        if line[0] == "ended"
    }
    judge(found, acknowledged([producer]), ended, kills, seed)
    pids = {
        line[1]
        for actor in (producer, worker)
        for line in actor.lines
        if line[0] == "ready"
    }
    assert pids == {"1"}
    assert any(line[0] == "ended" for line in worker.lines)
    assert acknowledged([producer])
