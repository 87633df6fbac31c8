"""One interleaved run of the engine against the raw disk and its three ancestors.

Run it with ``python -m tests.benchmarks.interleaved [DIRECTORY]``; peers that are not
installed are left out with a line that says so. A figure counts as a ratio of
medians measured in the same run, never as an absolute time.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from django_nobroker import Queue
from django_nobroker.engine.store import Store

PAYLOAD = {"send_email_to": "ada@example.com", "user": 42, "lang": "en"}
LINE = b"x" * 199 + b"\n"

Case = Callable[[Path], float]


def _each(number: int, action: Callable[[], object]) -> float:
    """Return seconds per call, over ``number`` calls."""
    began = time.perf_counter()
    for _ in range(number):
        action()
    return (time.perf_counter() - began) / number


def raw_durable(where: Path) -> float:
    """Append 200 bytes and sync them, in a bare loop."""
    fd = os.open(where / "raw", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)

    def once() -> None:
        os.write(fd, LINE)
        os.fdatasync(fd)

    try:
        once()
        return _each(300, once)
    finally:
        os.close(fd)


def durable(where: Path) -> float:
    """Enqueue durably, one job at a time."""
    with Queue[object](where / "durable") as queue:
        queue.enqueue(PAYLOAD)
        return _each(300, lambda: queue.enqueue(PAYLOAD))


def threads(number: int) -> Case:
    """Enqueue durably from several threads; seconds per job of all together."""

    def case(where: Path) -> float:
        each = 1200 // number if number > 1 else 300
        with Queue[object](where / f"threads{number}") as queue:
            queue.enqueue(PAYLOAD)
            workers = [
                threading.Thread(
                    target=lambda: _each(each, lambda: queue.enqueue(PAYLOAD))
                )
                for _ in range(number)
            ]
            began = time.perf_counter()
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            return (time.perf_counter() - began) / (each * number)

    return case


def relaxed(where: Path) -> float:
    """Enqueue without a sync, one job at a time."""
    with Queue[object](where / "relaxed", fsync=False) as queue:
        queue.enqueue(PAYLOAD)
        return _each(3000, lambda: queue.enqueue(PAYLOAD))


def lmdb_queue_put(where: Path) -> float:
    """Put into lmdb-queue, which never syncs."""
    from equeue import Queue as LmdbQueue

    with LmdbQueue(str(where / "equeue"), do_recover=False, do_vacuum=False) as queue:
        queue.put(PAYLOAD)
        return _each(3000, lambda: queue.put(PAYLOAD))


def many(where: Path) -> float:
    """Enqueue 20,000 jobs in one call; seconds per job."""
    with Queue[object](where / "many") as queue:
        queue.enqueue(PAYLOAD)
        return _each(1, lambda: queue.enqueue_many([PAYLOAD] * 20_000)) / 20_000


def localqueue_many(where: Path) -> float:
    """Put 20,000 items into localqueue (durable) in one call; seconds per item."""
    from localqueue import DurabilityMode, SimpleQueue

    (where / "localqueue").mkdir()
    queue = SimpleQueue(str(where / "localqueue"), durability=DurabilityMode.DURABLE)
    try:
        queue.put(PAYLOAD)
        return _each(1, lambda: queue.put_many([PAYLOAD] * 20_000)) / 20_000
    finally:
        queue.close()


JOBS = 100_000  # three records each: enqueue, lease, ack


def replay_case(where: Path) -> Case:
    """Prepare a log of 300,000 records once; each round rebuilds the index from it."""
    directory = where / "replay"
    with Queue[object](directory, fsync=False, visibility_timeout=3600) as queue:
        for _ in range(JOBS // 1000):
            queue.enqueue_many([PAYLOAD] * 1000)
            for job in queue.lease(1000):
                queue.ack(job)

    def case(_: Path) -> float:
        store = Store(str(directory))
        try:
            store.index.catch_up(0)
            store.index.discard()
            return _each(1, lambda: store.index.catch_up(store.end)) / (3 * JOBS)
        finally:
            store.close()

    return case


def nobroker_replay_case(where: Path) -> Case:
    """The same history in the first ancestor; opening it is its replay."""
    from nobroker import Queue as Ancestor

    directory = where / "nobroker"
    queue = Ancestor(str(directory), fsync=False, visibility_timeout=3600)
    for _ in range(JOBS // 1000):
        queue.enqueue_many([PAYLOAD] * 1000)
        for job in queue.lease(1000):
            queue.ack(job)
    queue.close()

    def case(_: Path) -> float:
        opened: list[Ancestor] = []
        seconds = _each(1, lambda: opened.append(Ancestor(str(directory), fsync=False)))
        opened[0].close()
        return seconds / (3 * JOBS)

    return case


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def cases(where: Path, *, replay: bool) -> dict[str, Case]:
    """Return everything that can be measured here, by name."""
    found: dict[str, Case] = {
        "raw write + fdatasync": raw_durable,
        "enqueue durable": durable,
        "enqueue durable, 1 thread": threads(1),
        "enqueue durable, 16 threads": threads(16),
        "enqueue relaxed": relaxed,
        "enqueue_many 20,000": many,
    }
    if _installed("equeue"):
        found["lmdb-queue put"] = lmdb_queue_put
    if _installed("localqueue"):
        found["localqueue put_many 20,000"] = localqueue_many
    if replay:
        found["replay 300,000"] = replay_case(where)
        if _installed("nobroker"):
            found["nobroker replay 300,000"] = nobroker_replay_case(where)
    return found


#: What the project set itself as a goal: first / second is at most (or at least) that.
GOALS = (
    ("enqueue durable", "raw write + fdatasync", "<=", 1.15),
    ("enqueue durable, 1 thread", "enqueue durable, 16 threads", ">=", 3.0),
    ("enqueue relaxed", "lmdb-queue put", "<=", 1.1),
    ("enqueue_many 20,000", "localqueue put_many 20,000", "<=", 0.6),
    ("nobroker replay 300,000", "replay 300,000", ">=", 10.0),
)


def measure(where: Path, rounds: int, *, replay: bool) -> dict[str, list[float]]:
    """Run every case once a round, one after the other, and return the seconds."""
    found = cases(where, replay=replay)
    seconds: dict[str, list[float]] = {name: [] for name in found}
    for number in range(rounds):
        for name, case in found.items():
            room = where / f"round{number}"
            room.mkdir(exist_ok=True)
            seconds[name].append(case(room))
        shutil.rmtree(where / f"round{number}")
    return seconds


def main() -> None:
    """Measure and print the table and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", nargs="?", help="a folder on the disk to measure")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-replay", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        seconds = measure(Path(folder), options.rounds, replay=not options.no_replay)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, values in seconds.items():
        low, high = min(values) * 1e6, max(values) * 1e6
        print(f"{name:32} {medians[name] * 1e6:9.2f} us  ({low:.2f} to {high:.2f})")
    print()
    for first, second, sign, goal in GOALS:
        if first not in medians or second not in medians:
            print(f"{first} / {second}: not measured, a peer is not installed")
            continue
        # Paired round by round, so that a slow moment of the disk hits both.
        ratio = statistics.median(
            a / b for a, b in zip(seconds[first], seconds[second], strict=True)
        )
        met = ratio <= goal if sign == "<=" else ratio >= goal
        print(
            f"{first} / {second}: {ratio:.2f} (goal {sign} {goal}: {'met' if met else 'missed'})"
        )


if __name__ == "__main__":
    main()
