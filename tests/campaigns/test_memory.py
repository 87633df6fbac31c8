"""A process that only enqueues does not pay for the jobs that wait."""

from __future__ import annotations

import pytest

from django_nobroker import Queue
from tests.campaigns.conducting import Actor

ENQUEUED = 2000
MOST = 20 * 1024  # KiB


def memory_of(store, scratch):
    with Actor("enqueuer", store, ENQUEUED, scratch=scratch) as enqueuer:
        assert enqueuer.end() == 0
    ((_, kib),) = enqueuer.lines
    return int(kib)


@pytest.mark.linux
@pytest.mark.parametrize(
    "waiting", [pytest.param(20_000), pytest.param(200_000, marks=pytest.mark.campaign)]
)
def test_memory_does_not_grow_with_the_jobs_that_wait(tmp_path, waiting):
    with Queue(tmp_path / "full", index_directory=tmp_path, fsync=False) as queue:
        for _ in range(waiting // 10_000):
            queue.enqueue_many(
                [{"user": number, "mail": "welcome"} for number in range(10_000)]
            )
        assert queue.stats().ready == waiting

    empty = memory_of(tmp_path / "empty", tmp_path)
    full = memory_of(tmp_path / "full", tmp_path)

    print(
        f"memory of a process that only enqueues: {empty / 1024:.1f} MiB with no "
        f"job waiting, {full / 1024:.1f} MiB with {waiting}"
    )
    assert full - empty < MOST
