"""A small store with a past, and every operation that may happen to it.

Each operation notes in the witness what it asks for and what it was told.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from django_nobroker.engine import (
    backup,
    compaction,
    deadletters,
    retention,
    settle,
    states,
    verification,
)
from django_nobroker.engine.claim import Claimed
from django_nobroker.engine.errors import NobrokerError
from django_nobroker.engine.record import Enqueue, Failure
from django_nobroker.engine.retention import Retention, Selection, Terms
from django_nobroker.engine.store import Store
from django_nobroker.engine.vfs import Vfs
from tests.engine.driving import (
    TIMEOUT,
    ack,
    add,
    add_many,
    held,
    nack,
    release,
    take_one,
)
from tests.faults.hands import SettableClock
from tests.faults.witness import Step, Witness

#: Small, so that a handful of operations fills several segments.
SEGMENT_SIZE = 1200
KEPT = Retention(queues={"q": Terms(results=0.0, dead=None, ids=86400.0)})
#: What a process had written of a record when it was killed.
TORN = b'0badcafe 00000099 {"op":"enqueue","at":'
NO = Failure(type="Error", message="no")


class UnsoundError(NobrokerError):
    """A verification told that something is wrong."""


class Copy(NamedTuple):
    """A backup: when it began, and when it was acknowledged."""

    begun: int
    sure: int | None


class World:
    """One handle on a store, and what its user knows."""

    def __init__(
        self,
        root: Path,
        vfs: Vfs,
        *,
        clock: SettableClock | None = None,
        witness: Witness | None = None,
        handle: str = "one",
        segment_size: int = SEGMENT_SIZE,
    ) -> None:
        self.root = root
        self.segment_size = segment_size
        self.directory = str(root / "jobs")
        self.vfs = vfs
        self.clock = clock or SettableClock()
        self.witness = witness or Witness()
        self.leased: list[tuple[str, Claimed]] = []
        self.dead: list[tuple[str, int]] = []
        self.copy: Copy | None = None
        self._handle = handle
        self._number = 0
        self._names: dict[int, str] = {}

    store: Store

    @property
    def index(self) -> Path:
        """Where its index is: outside of the disk that may crash."""
        return self.root.parent / f"{self.root.name}-index-{self._handle}"

    def open(self) -> None:
        """Open the store as another process does; it is made if it is missing."""
        self.index.mkdir(exist_ok=True)
        self.store = Store(
            self.directory,
            clock=self.clock,
            vfs=self.vfs,
            segment_size=self.segment_size,
            index_root=str(self.index),
        )

    @property
    def is_open(self) -> bool:
        return hasattr(self, "store") and not self.store.closed

    def close(self) -> None:
        if self.is_open:
            self.store.close()

    def beside(self, vfs: Vfs, handle: str) -> World:
        """Return another process on the same store, seen by the same witness."""
        other = World(
            self.root,
            vfs,
            clock=self.clock,
            witness=self.witness,
            handle=handle,
            segment_size=self.segment_size,
        )
        other._names = self._names
        return other

    def positions(self) -> dict[str, int]:
        """Return the position of every job, by its name."""
        return {name: position for position, name in self._names.items()}

    # --- operations ----------------------------------------------------------------------

    def name(self) -> str:
        self._number += 1
        return f"{self._handle}-{self._number}"

    def _added(self, name: str, record: Enqueue) -> None:
        self._names[record.at] = name

    def enqueue(self) -> None:
        name = self.name()
        with self.witness.expects({name: "ready"}):
            self._added(name, add(self.store, name))

    def enqueue_relaxed(self) -> None:
        name = self.name()
        with self.witness.expects({name: "ready"}, durable=False):
            self._added(name, add(self.store, name, durable=False))

    def enqueue_long(self) -> None:
        """A job over several sectors, so that its write may be torn inside."""
        name = self.name()
        with self.witness.expects({name: "ready"}):
            self._added(name, add(self.store, name, kind="k" * 1100))

    def batch(self) -> None:
        names = [self.name() for _ in range(3)]
        with self.witness.expects(dict.fromkeys(names, "ready")):
            added = add_many(self.store, names)
            for name, record in zip(names, added, strict=True):
                self._added(name, record)

    def with_id(self) -> None:
        name = f"given-{self.name()}"
        with self.witness.expects({name: "ready"}):
            self._added(name, add(self.store, name, job_id=name, scope="queue"))

    def lease(self) -> None:
        steps, begun = self.witness.steps, self.witness.now()
        ready = [name for name, known in steps.items() if known[-1].state == "ready"]
        try:
            job = take_one(self.store)
        except BaseException:
            # It may have been any of them.
            for name in ready:
                steps[name].append(Step("leased", begun, None))
            raise
        name = self._names[job.position]
        steps[name].append(Step("leased", begun, None))
        self.leased.append((name, job))

    def ack(self) -> None:
        name, job = self.leased.pop(0)
        with self.witness.expects({name: "done"}):
            ack(self.store, job, {"result": name})

    def nack(self) -> None:
        name, job = self.leased.pop(0)
        is_last = job.row.attempts >= job.row.max_attempts
        with self.witness.expects({name: "dead" if is_last else "ready"}):
            nack(self.store, job)

    def release(self) -> None:
        name, job = self.leased.pop(0)
        with self.witness.expects({name: "ready"}):
            release(self.store, job)

    def extend(self) -> None:
        settle.extend(self.store, held(self.leased[0][1]), 90.0, timeout=TIMEOUT)

    def bury(self) -> None:
        name, job = self.leased.pop(0)
        self.dead.append((name, job.position))
        with self.witness.expects({name: "dead"}):
            settle.bury(
                self.store,
                held(job),
                error=NO,
                reason=settle.REJECTED,
                durable=True,
                timeout=TIMEOUT,
            )

    def requeue(self) -> None:
        name, job = self.dead.pop(0)
        with self.witness.expects({name: "ready"}):
            deadletters.requeue(
                self.store, [job], by="ada", durable=True, timeout=TIMEOUT
            )

    def discard(self) -> None:
        name, job = self.dead.pop(0)
        with self.witness.expects({name: "discarded"}):
            deadletters.discard(
                self.store, [job], by="ada", durable=True, timeout=TIMEOUT
            )

    def _ended(self, *ended: str) -> list[str]:
        steps = self.witness.steps
        return [name for name, known in steps.items() if known[-1].state in ended]

    def purge(self) -> None:
        gone = dict.fromkeys(self._ended("dead", "forgotten"), "absent")
        chosen = Selection(queue="q", states=(states.DEAD,))
        self.dead.clear()
        with self.witness.expects(gone):
            retention.purge(self.store, chosen, by="ada", durable=True, timeout=TIMEOUT)

    def _going(self) -> dict[str, str]:
        return {
            name: "forgotten" if name.startswith("given-") else "absent"
            for name in self._ended("done", "discarded")
        }

    def expire(self) -> None:
        with self.witness.expects(self._going(), durable=False):
            retention.expire(self.store, KEPT, timeout=TIMEOUT)

    def compact(self) -> None:
        with self.witness.expects(self._going(), durable=False):
            compaction.compact(self.store, KEPT, timeout=TIMEOUT)

    def roll(self) -> None:
        assert self.store.writer is not None
        self.store.writer.roll(TIMEOUT)

    def rebuild(self) -> None:
        verification.rebuild_index(self.store)

    def verify(self) -> None:
        report = verification.verify(self.store)
        if not report.ok:
            raise UnsoundError(report.errors)

    def backup(self) -> None:
        self.copy = Copy(self.witness.now(), None)
        backup.backup(self.store, self.root / "copy")
        self.copy = self.copy._replace(sure=self.witness.now())

    def reopen(self) -> None:
        """Let the next process open the store without its control page."""
        self.store.close()
        Path(self.directory, "control").unlink()
        self.open()

    def tear(self) -> None:
        """Leave the torn end of a write that nobody acknowledged."""
        last = max(Path(self.directory).glob("*.log"))
        fd = self.vfs.open(str(last), os.O_RDWR | os.O_APPEND)
        self.vfs.write(fd, TORN)
        self.vfs.close(fd)

    def fill(self) -> None:
        """Go on until the next append begins a new segment."""
        self.roll()
        while self._size_of_newest() < self.segment_size:
            self.enqueue()

    def _size_of_newest(self) -> int:
        return max(Path(self.directory).glob("*.log")).stat().st_size

    # --- a past ----------------------------------------------------------------------------

    def live(self) -> None:
        """Give the store a past: jobs in every state, over several segments."""
        self.open()
        for _ in range(6):
            self.enqueue()
        self.with_id()
        for _ in range(7):
            self.lease()
        self.ack()
        self.bury()
        self.bury()
        self.nack()
        while self.leased[-1][0].startswith("given-") and len(self.leased) > 2:
            self.leased.insert(0, self.leased.pop())
            self.ack()
        self.enqueue()


Operation = Callable[[World], None]


def _operation(name: str) -> Operation:
    return functools.partial(_run, name=name)


def _run(world: World, *, name: str) -> None:
    getattr(world, name)()


#: By name: everything that happens to a store.
OPERATIONS: dict[str, Operation] = {
    name: _operation(name)
    for name in (
        "enqueue",
        "enqueue_relaxed",
        "enqueue_long",
        "batch",
        "with_id",
        "lease",
        "ack",
        "nack",
        "release",
        "extend",
        "bury",
        "requeue",
        "discard",
        "purge",
        "expire",
        "compact",
        "backup",
        "roll",
        "rebuild",
        "verify",
        "reopen",
    )
}


#: What has to be there before, by operation.
NEEDS = {
    "ack": "leased",
    "nack": "leased",
    "release": "leased",
    "extend": "leased",
    "bury": "leased",
    "requeue": "dead",
    "discard": "dead",
}


def possible(world: World) -> list[str]:
    """Return the operations that make sense now; one backup is enough."""
    ready = any(known[-1].state == "ready" for known in world.witness.steps.values())
    return [
        name
        for name in OPERATIONS
        if (name not in NEEDS or getattr(world, NEEDS[name]))
        and (name != "lease" or ready)
        and (name != "backup" or world.copy is None)
    ]


class Case(NamedTuple):
    """An operation that is to be disturbed, and what comes before it."""

    before: tuple[Operation, ...]
    operation: Operation


#: By name: every operation on a store with a past, and making one.
CASES: dict[str, Case] = {
    "make": Case((), World.open),
    **{name: Case((World.live,), one) for name, one in OPERATIONS.items()},
    "recover": Case((World.live, World.tear), World.reopen),
    "settle the rest of a write": Case((World.live, World.tear), World.enqueue),
    "append to a full segment": Case((World.live, World.fill), World.enqueue),
}
