"""A queue that was opened before a fork can be used by parent and children."""

from __future__ import annotations

import pytest

from django_nobroker import Queue
from tests.campaigns.conducting import Actor, acknowledged, check


@pytest.mark.parametrize(
    "jobs", [pytest.param(50), pytest.param(500, marks=pytest.mark.campaign)]
)
def test_forked_children_and_their_parent_enqueue_at_once(tmp_path, jobs):
    store, children = tmp_path / "jobs", 8
    with Actor("preloader", store, children, jobs, scratch=tmp_path) as preloader:
        assert preloader.end() == 0

    found = check(store, tmp_path)

    promised = acknowledged([preloader])
    expected = 10 + (children + 1) * jobs
    assert ["failed", "0"] in preloader.lines
    assert found["wrong"] == []
    assert len(promised) == expected
    assert {job_id for job_id, _ in found["jobs"]} == promised
    assert len(found["jobs"]) == expected
    assert not (store / "set-aside").exists()
    with Queue(store, index_directory=tmp_path) as queue:
        assert not queue.recovery.repaired
        assert queue.stats().total == expected
    print(
        f"forks: {children} children and their parent enqueued "
        f"{len(found['jobs'])}/{expected} jobs, nothing repaired"
    )
