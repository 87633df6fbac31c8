"""Processes on one store share a replica, and none throws it away without need."""

from __future__ import annotations


def test_a_replica_that_somebody_else_brought_further_is_kept(queue):
    """Whoever looked at the end of the log a moment ago knows less than the replica."""
    queue.enqueue("first", job_id="first")
    store = queue.opened()
    earlier = store.end
    queue.enqueue("second", job_id="second")
    assert queue.stats().ready == 2
    env = store.index._environment()

    store.index.catch_up(earlier)

    assert store.index._environment() is env
    assert queue.stats().ready == 2
