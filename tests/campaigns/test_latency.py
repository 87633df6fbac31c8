"""An idle worker of another process begins a job when it is enqueued, not when it polls."""

from __future__ import annotations

import statistics
import time

import pytest

from django_nobroker import Queue
from django_nobroker.engine.control import waiting_slot
from tests.campaigns.conducting import PATIENCE, Actor
from tests.campaigns.listener import POLL_INTERVAL


def wait_until_it_sleeps(queue):
    """Return when the worker has said in the control page that it will sleep."""
    control, slot = queue.opened().control, waiting_slot(queue.name)
    deadline = time.monotonic() + PATIENCE
    while not control.waiting_until(slot):
        assert time.monotonic() < deadline, "the worker never went to sleep"
        time.sleep(0.0005)


@pytest.mark.parametrize(
    "count", [pytest.param(20), pytest.param(200, marks=pytest.mark.campaign)]
)
def test_the_doorbell_wakes_an_idle_worker(tmp_path, count):
    enqueued = {}
    with (
        Actor("listener", tmp_path / "jobs", scratch=tmp_path) as listener,
        Queue(tmp_path / "jobs", index_directory=tmp_path) as queue,
    ):
        listener.wait_until_ready()
        for number in range(count):
            wait_until_it_sleeps(queue)
            before = time.monotonic_ns()
            queue.enqueue(number)
            enqueued[number] = before, time.monotonic_ns()
            listener.wait_for("began", str(number))

    began = {
        int(line[1]): int(line[2]) for line in listener.lines if line[0] == "began"
    }
    whole = sorted((began[n] - enqueued[n][0]) / 1e6 for n in range(count))
    after = sorted((began[n] - enqueued[n][1]) / 1e6 for n in range(count))
    for what, values in (
        ("enqueue() called", whole),
        ("enqueue() returned", after),
    ):
        print(
            f"doorbell, {count} jobs, from {what} to the handler: median "
            f"{statistics.median(values):.2f} ms, p99 "
            f"{values[int(0.99 * (count - 1))]:.2f} ms, max {values[-1]:.2f} ms"
        )
    assert whole[-1] < POLL_INTERVAL * 1000 / 2
