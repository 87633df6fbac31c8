"""What ``bench`` measures, in a directory that is its own; each row takes its time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from django_nobroker.plain.queue import Queue
from django_nobroker.retry import BackoffPolicy

_PAYLOAD = {"send_email_to": "ada@example.com", "template": "welcome", "user_id": 4711}
#: About what one job writes to the log when it is enqueued.
_LINE = b"x" * 250 + b"\n"
_BATCH = 100
#: No row makes more jobs, so that those which come after it stay short.
_MOST_JOBS = 20_000
_LEASE = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One row: operations per second, and the median of one call in seconds."""

    name: str
    count: int
    per_second: float
    median_seconds: float

    def ratio(self, baseline: Measured) -> float:
        """Return how much faster it is than another row; 1 is as fast."""
        return self.per_second / baseline.per_second


def rows(
    directory: Path, seconds: float
) -> Generator[Callable[[], Measured], None, None]:
    """Yield the measurements one by one, the raw disk first; each is to be called once.

    A row takes about ``seconds``.
    """
    durable = _queue(directory, "durable", fsync=True)
    relaxed = _queue(directory, "relaxed", fsync=False)
    try:
        yield lambda: _raw(directory, seconds)
        yield lambda: _enqueue(durable, "enqueue", seconds)
        yield lambda: _batches(durable, "enqueue_many of 100", seconds)
        yield lambda: _lease_and(durable, "lease + ack", seconds, Queue.ack)
        yield lambda: _lease_and(durable, "lease + nack", seconds, Queue.nack)
        yield lambda: _enqueue(relaxed, "enqueue, fsync=False", seconds)
        yield lambda: _lease_and(
            relaxed, "lease + ack, fsync=False", seconds, Queue.ack
        )
        yield lambda: _replay(durable)
        yield lambda: _compact(durable)
    finally:
        for queue in (durable, relaxed):
            # An index is a cache, and nobody will come back to this one.
            queue.opened().index.discard()
            queue.close()


def _queue(directory: Path, name: str, *, fsync: bool) -> Queue[Any]:
    return Queue(
        directory / name,
        fsync=fsync,
        visibility_timeout=_LEASE,
        backoff=BackoffPolicy(base=_LEASE, max_delay=_LEASE),
    )


def _timed(
    name: str, act: Callable[[], bool], seconds: float, *, each: int = 1
) -> Measured:
    """Call ``act`` until the time is over or it has nothing left to do."""
    spent: list[float] = []
    began = now = time.perf_counter()
    while now - began < seconds and len(spent) * each < _MOST_JOBS and act():
        before, now = now, time.perf_counter()
        spent.append(now - before)
    count = len(spent) * each
    return Measured(
        name=name,
        count=count,
        per_second=count / (now - began) if spent else 0.0,
        median_seconds=median(spent) if spent else 0.0,
    )


def _raw(directory: Path, seconds: float) -> Measured:
    fd = os.open(directory / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    sync = getattr(os, "fdatasync", os.fsync)

    def act() -> bool:
        os.write(fd, _LINE)
        sync(fd)
        return True

    try:
        return _timed("raw write + fdatasync", act, seconds)
    finally:
        os.close(fd)


def _enqueue(queue: Queue[Any], name: str, seconds: float) -> Measured:
    def act() -> bool:
        queue.enqueue(_PAYLOAD)
        return True

    return _timed(name, act, seconds)


def _batches(queue: Queue[Any], name: str, seconds: float) -> Measured:
    batch = [_PAYLOAD] * _BATCH

    def act() -> bool:
        queue.enqueue_many(batch)
        return True

    return _timed(name, act, seconds, each=_BATCH)


def _lease_and(
    queue: Queue[Any],
    name: str,
    seconds: float,
    settle: Callable[[Queue[Any], Any], object],
) -> Measured:
    queue.stats()  # so that the index has caught up before the clock runs

    def act() -> bool:
        job = queue.lease_one()
        if job is None:
            return False
        settle(queue, job)
        return True

    return _timed(name, act, seconds)


def _once(name: str, act: Callable[[], int]) -> Measured:
    began = time.perf_counter()
    count = act()
    spent = time.perf_counter() - began
    return Measured(
        name=name, count=count, per_second=count / spent, median_seconds=spent
    )


def _replay(queue: Queue[Any]) -> Measured:
    return _once("rebuild-index, per job", queue.rebuild_index)


def _compact(queue: Queue[Any]) -> Measured:
    def act() -> int:
        done = queue.compact()
        return done.kept + done.dropped

    return _once("compact, per job", act)
