"""Two handles on one store, driven at random, always agree with a plain dict."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from django_nobroker.engine import (
    compaction,
    deadletters,
    framing,
    history,
    retention,
    settle,
    verification,
)
from django_nobroker.engine.enqueue import Duplicate, place
from django_nobroker.engine.errors import JobNotFoundError, NotLeasedError
from django_nobroker.engine.record import Failure
from django_nobroker.engine.retention import Retention, Selection, Terms
from django_nobroker.engine.store import Store
from tests.faults.files import FaultyFiles
from tests.faults.hands import SettableClock

from .driving import (
    STATE_NAMES,
    TIMEOUT,
    add_many,
    everything,
    first_of,
    held,
    log_of,
    look_for_work,
    new,
    recount,
)
from .driving import row as row_of

QUEUES = ("a", "b")
LEASE = 30.0
BACKOFF = 7.0


@dataclass
class Expected:
    """What a job should be."""

    queue: str
    priority: int
    maximum: int
    available: float  # wall clock
    due_wall: float | None = None
    due_boot: float | None = None  # of this boot
    state: str = "ready"
    attempts: int = 0
    until: float = 0.0
    given: str | None = None
    enqueued: float = 0.0
    finished: float = 0.0
    payload: object = 1
    claims: list[Any] = field(default_factory=list)


class Fast(FaultyFiles):
    """Syncs that cost nothing: no power is cut here."""

    def __init__(self) -> None:
        super().__init__()
        self.fsync = self.fdatasync = lambda fd: None  # type: ignore[assignment]
        self.calls = _Nothing()


class _Nothing(list[Any]):
    def append(self, item: Any) -> None:
        pass


class TwoHandles(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.clock = SettableClock()
        self.jobs: dict[int, Expected] = {}
        self.ids: dict[str, int] = {}
        self.payloads = 0
        self.gone: list[Any] = []  # claims of jobs that are not there any more
        self.handles = [self.open(n) for n in range(2)]

    def open(self, number: int) -> Store:
        root = self.root / f"index-{number}"
        root.mkdir(exist_ok=True)
        return Store(
            str(self.root / "jobs"),
            index_root=str(root),
            clock=self.clock,
            vfs=Fast(),
            segment_size=2500,
        )

    def teardown(self) -> None:
        for store in self.handles:
            store.close()
        shutil.rmtree(self.root)

    # --- what the model knows ---------------------------------------------------

    def due(self, job: Expected) -> bool:
        if job.state != "ready":
            return False
        if job.due_wall is not None and job.due_wall > self.clock.wall():
            return False
        return job.due_boot is None or job.due_boot <= self.clock.boot()

    def pick(self, choice: int, *states: str) -> int | None:
        fitting = [at for at, job in self.jobs.items() if job.state in states]
        return fitting[choice % len(fitting)] if fitting else None

    def expected_order(self) -> list[int]:
        due = [at for at, job in self.jobs.items() if self.due(job)]
        return sorted(
            due,
            key=lambda at: (-self.jobs[at].priority, self.jobs[at].available, at),
        )

    # --- rules --------------------------------------------------------------------

    @rule(
        handle=st.integers(0, 1),
        queue=st.sampled_from(QUEUES),
        priority=st.integers(-1, 1),
        delay=st.sampled_from([None, None, 5.0, 50.0]),
        maximum=st.integers(1, 3),
        durable=st.booleans(),
    )
    def enqueue(self, handle, queue, priority, delay, maximum, durable):
        store = self.handles[handle]
        self.payloads += 1
        job = new(
            store,
            self.payloads,
            queue=queue,
            priority=priority,
            delay=delay,
            max_attempts=maximum,
        )
        place(store, [job], durable=durable, timeout=TIMEOUT)
        now = self.clock.wall()
        self.jobs[job.at] = Expected(
            queue,
            priority,
            maximum,
            enqueued=now,
            available=now + (delay or 0.0),
            due_wall=None if delay is None else now + delay,
            payload=self.payloads,
        )

    @rule(handle=st.integers(0, 1), size=st.integers(2, 5))
    def enqueue_batch(self, handle, size):
        jobs = add_many(self.handles[handle], range(size), queue="a")
        for payload, job in enumerate(jobs):
            self.jobs[job.at] = Expected(
                "a",
                0,
                3,
                enqueued=self.clock.wall(),
                available=self.clock.wall(),
                payload=payload,
            )

    @rule(
        handle=st.integers(0, 1),
        name=st.sampled_from("xyz"),
        blocking=st.sampled_from([None, 20.0]),
    )
    def enqueue_with_id(self, handle, name, blocking):
        store = self.handles[handle]
        known = self.ids.get(name)
        if known is not None and blocking is not None:
            job = self.jobs[known]
            long_ago = job.finished < self.clock.wall() - blocking
            if job.state in ("done", "discarded", "forgotten") and long_ago:
                known = None
        (answer,) = place(
            store,
            [new(store, name, queue="b", job_id=name)],
            durable=True,
            timeout=TIMEOUT,
            blocking=blocking,
        )
        if known is not None:
            assert isinstance(answer, Duplicate)
            assert answer.position == known
        else:
            assert not isinstance(answer, Duplicate)
            self.ids[name] = answer.at
            self.jobs[answer.at] = Expected(
                "b",
                0,
                3,
                enqueued=self.clock.wall(),
                available=self.clock.wall(),
                given=name,
                payload=name,
            )

    @rule(handle=st.integers(0, 1), count=st.integers(1, 4))
    def claim(self, handle, count):
        self.expire()
        store = self.handles[handle]
        store.commit(store.end)
        expected = self.expected_order()[:count]
        found = look_for_work(
            store, count, seconds=LEASE, delay=lambda queue, attempt: BACKOFF
        )
        assert [one.position for one in found.jobs] == expected
        for one in found.jobs:
            job = self.jobs[one.position]
            job.state, job.attempts = "leased", job.attempts + 1
            job.until = self.clock.boot() + LEASE
            job.due_wall = job.due_boot = None
            job.claims.append(one)

    def expire(self) -> None:
        """What a claim does first with leases that have run out."""
        for job in self.jobs.values():
            if job.state == "leased" and job.until <= self.clock.boot():
                if job.attempts >= job.maximum:
                    self.end(job, "dead")
                else:
                    self.retry(job, BACKOFF)

    def end(self, job: Expected, state: str) -> None:
        job.state, job.finished = state, self.clock.wall()

    def retry(self, job: Expected, delay: float) -> None:
        job.state = "ready"
        job.available = self.clock.wall() + delay
        job.due_wall = None
        job.due_boot = self.clock.boot() + delay if delay else None

    def settle(self, handle, choice, action):
        """Let ``action`` happen to a leased job with its token; False if there is none."""
        at = self.pick(choice, "leased")
        if at is None:
            return None
        action(self.handles[handle], held(self.jobs[at].claims[-1]))
        return self.jobs[at]

    @rule(handle=st.integers(0, 1), choice=st.integers(0, 9))
    def ack(self, handle, choice):
        job = self.settle(
            handle,
            choice,
            lambda store, one: settle.ack(
                store, one, result=b"1", durable=True, timeout=TIMEOUT
            ),
        )
        if job is not None:
            self.end(job, "done")

    @rule(
        handle=st.integers(0, 1),
        choice=st.integers(0, 9),
        delay=st.sampled_from([0.0, 3.0]),
    )
    def nack(self, handle, choice, delay):
        job = self.settle(
            handle,
            choice,
            lambda store, one: settle.nack(
                store,
                one,
                error=Failure(message="no"),
                delay=delay,
                backoff=lambda queue, attempt: 0.0,
                durable=True,
                timeout=TIMEOUT,
            ),
        )
        if job is None:
            return
        if job.attempts >= job.maximum:
            self.end(job, "dead")
        else:
            self.retry(job, delay)

    @rule(handle=st.integers(0, 1), choice=st.integers(0, 9))
    def release(self, handle, choice):
        job = self.settle(
            handle,
            choice,
            lambda store, one: settle.release(
                store, one, durable=True, timeout=TIMEOUT
            ),
        )
        if job is not None:
            job.state, job.attempts = "ready", job.attempts - 1

    @rule(
        handle=st.integers(0, 1),
        choice=st.integers(0, 9),
        seconds=st.sampled_from([1.0, 100.0]),
    )
    def extend(self, handle, choice, seconds):
        job = self.settle(
            handle,
            choice,
            lambda store, one: settle.extend(store, one, seconds, timeout=TIMEOUT),
        )
        if job is not None:
            job.until = max(job.until, self.clock.boot() + seconds)

    @rule(handle=st.integers(0, 1), choice=st.integers(0, 9))
    def use_a_stale_token(self, handle, choice):
        stale = [
            claim
            for job in self.jobs.values()
            for claim in (job.claims[:-1] if job.state == "leased" else job.claims)
            if not (job.state in ("done", "forgotten") and claim is job.claims[-1])
        ] + self.gone
        if not stale:
            return
        try:
            settle.ack(
                self.handles[handle],
                held(stale[choice % len(stale)]),
                result=None,
                durable=True,
                timeout=TIMEOUT,
            )
        except (NotLeasedError, JobNotFoundError):
            return
        raise AssertionError("a stale token was accepted")

    @rule(handle=st.integers(0, 1), choice=st.integers(0, 9))
    def ack_again(self, handle, choice):
        at = self.pick(choice, "done", "forgotten")
        if at is None or self.jobs[at].attempts == 0:
            return
        store = self.handles[handle]
        before = everything(store)
        settle.ack(
            store,
            held(self.jobs[at].claims[-1]),
            result=None,
            durable=True,
            timeout=TIMEOUT,
        )
        assert everything(store) == before

    @rule(handle=st.integers(0, 1), choice=st.integers(0, 9))
    def requeue(self, handle, choice):
        at = self.pick(choice, *STATE_NAMES)
        if at is None:
            return
        moved = deadletters.requeue(
            self.handles[handle], [at], by="", durable=True, timeout=TIMEOUT
        )
        job = self.jobs[at]
        assert moved == ([at] if job.state == "dead" else [])
        if moved:
            job.state, job.attempts = "ready", 0
            job.available = self.clock.wall()
            job.due_wall = job.due_boot = None

    @rule(handle=st.integers(0, 1), choice=st.integers(0, 9))
    def discard(self, handle, choice):
        at = self.pick(choice, *STATE_NAMES)
        if at is None:
            return
        moved = deadletters.discard(
            self.handles[handle], [at], by="", durable=True, timeout=TIMEOUT
        )
        job = self.jobs[at]
        assert moved == ([at] if job.state in ("dead", "ready") else [])
        if moved:
            self.end(job, "discarded")

    # --- letting go -------------------------------------------------------------

    @rule(
        handle=st.integers(0, 1),
        results=st.sampled_from([0.0, 20.0, None]),
        dead=st.sampled_from([None, None, 10.0]),
        ids=st.sampled_from([0.0, 50.0, None]),
        roll=st.booleans(),
    )
    def compact(self, handle, results, dead, ids, roll):
        store = self.handles[handle]
        terms = Terms(results=results, dead=dead, ids=ids)
        kept = Retention(queues=dict.fromkeys(QUEUES, terms))
        before = sum(job.state != "forgotten" for job in self.jobs.values())
        done = compaction.compact(store, kept, timeout=TIMEOUT, roll=roll)
        ttls = {"done": results, "discarded": results, "dead": dead, "forgotten": ids}
        for at, job in list(self.jobs.items()):
            if not self.is_over(job, ttls.get(job.state)):
                continue
            blocks = job.given is not None and self.ids.get(job.given) == at
            if blocks and not self.is_over(job, ids):
                job.state = "forgotten"
            else:
                self.forget(at)
        shown = sum(job.state != "forgotten" for job in self.jobs.values())
        assert done.kept == shown
        assert done.dropped == before - shown

    def is_over(self, job: Expected, ttl: float | None) -> bool:
        """Tell whether a job ended longer ago than it has to stay."""
        if ttl is None or job.state not in ("done", "discarded", "dead", "forgotten"):
            return False
        return not ttl or job.finished < self.clock.wall() - ttl

    def forget(self, at: int) -> None:
        job = self.jobs.pop(at)
        self.gone += job.claims
        if job.given is not None and self.ids.get(job.given) == at:
            del self.ids[job.given]

    @rule(
        handle=st.integers(0, 1),
        queue=st.sampled_from(QUEUES),
        state=st.sampled_from(STATE_NAMES),
        age=st.sampled_from([None, None, 10.0]),
    )
    def purge(self, handle, queue, state, age):
        until = None if age is None else self.clock.wall() - age
        chosen = Selection(queue=queue, states=[STATE_NAMES.index(state)], until=until)
        gone = retention.purge(
            self.handles[handle], chosen, by="", durable=True, timeout=TIMEOUT
        )
        going = [
            at
            for at, job in self.jobs.items()
            if job.queue == queue
            and job.state == state
            and self.is_older(job, at, until)
        ]
        assert gone == (0 if state == "forgotten" else len(going))
        for at in going:
            self.forget(at)

    def is_older(self, job: Expected, at: int, until: float | None) -> bool:
        if until is None:
            return True
        if job.state in ("ready", "leased"):
            return job.enqueued < until
        return job.finished < until

    @rule(seconds=st.sampled_from([1.0, 6.0, 31.0]))
    def let_time_pass(self, seconds):
        self.clock.advance(seconds)

    @rule(number=st.integers(0, 1))
    def reopen(self, number):
        self.handles[number].close()
        self.handles[number] = self.open(number)
        assert not self.handles[number].recovery.repaired

    @rule()
    def lose_the_control_page(self):
        """Everybody is gone, and so is what this boot knew."""
        self.crash()
        for number in range(2):
            self.handles[number] = self.open(number)
            assert not self.handles[number].recovery.repaired

    @rule()
    def restart_the_machine(self):
        self.crash()
        self.clock.restart()
        for job in self.jobs.values():
            job.due_boot = None
            job.until = 0.0
        for number in range(2):
            self.handles[number] = self.open(number)

    def crash(self) -> None:
        for store in self.handles:
            store.close()
        (self.root / "jobs" / "control").unlink()

    @rule(number=st.integers(0, 1))
    def throw_the_index_away(self, number):
        self.handles[number].index.discard()

    @rule(number=st.integers(0, 1))
    def look(self, number):
        store = self.handles[number]
        assert recount(store) == everything(store)["counts"]
        for at, job in self.jobs.items():
            self.read(store, at, job)

    def read(self, store: Store, at: int, job: Expected) -> None:
        row = row_of(store, at)
        text = history.payload(store, row)
        if job.state == "forgotten":
            assert text is None
            assert history.fingerprint(store, at, row)
            return
        assert text is not None
        assert msgspec.json.decode(text) == job.payload
        if job.state == "done":
            assert history.result(store, row) == b"1"
        if job.state == "dead":
            assert history.failure(store, row) is not None

    @rule(number=st.integers(0, 1))
    def verify(self, number):
        found = verification.verify(self.handles[number])
        assert found.ok, found.errors

    # --- always -------------------------------------------------------------------

    @invariant()
    def both_handles_see_what_the_model_says(self):
        expected = {
            at: (job.state, job.attempts, job.priority) for at, job in self.jobs.items()
        }
        seen = [everything(store) for store in self.handles]
        for one in seen:
            rows = {
                at: (STATE_NAMES[row["state"]], row["attempts"], row["priority"])
                for at, row in one["rows"].items()
            }
            assert rows == expected
            assert one["orphans"] == 0
        for part, value in seen[0].items():
            assert value == seen[1][part], part

    @invariant()
    def the_log_holds_whole_records_only(self):
        directory = self.root / "jobs"
        decoded = framing.decode_stretch(
            log_of(directory), first_of(directory), final=True
        )
        assert decoded.damage == []
        assert decoded.end == self.handles[0].end == self.handles[1].end


TestTwoHandles = TwoHandles.TestCase
TestTwoHandles.settings = settings(
    max_examples=200, stateful_step_count=50, suppress_health_check=list(HealthCheck)
)
