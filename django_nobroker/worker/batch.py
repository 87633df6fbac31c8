"""The jobs that one thread has leased at once, on their way to being settled."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from django_nobroker.engine.claim import Claimed
from django_nobroker.engine.settle import Held
from django_nobroker.seam import Attempt, Done, Outcome

from .pace import BUDGET

#: After so many seconds in one job, nothing else of its batch waits any longer.
LATE = 0.05
#: Results of so many bytes are settled at once, so that no transaction grows large.
_LARGEST = 256 * 1024


@dataclass(slots=True)
class Leased:
    """One leased job between its claim and its settling."""

    claimed: Claimed
    lease: float | None = None  # seconds; None = the worker's
    given_back: bool = False
    held: Held = field(init=False)

    def __post_init__(self) -> None:
        """Keep the proof at hand: each heartbeat needs it."""
        self.held = Held(self.claimed.position, self.claimed.token)

    @property
    def id(self) -> str:
        """The job's id."""
        return self.claimed.row.id


@dataclass(frozen=True, slots=True)
class Ended:
    """One job whose attempt is over, with its outcome; it is not settled yet."""

    job: Leased
    attempt: Attempt
    outcome: Outcome


class Batch:
    """Jobs that wait, one that runs, and those that have ended, of one thread.

    The thread takes job after job. If one of them takes long, another thread takes
    what waits and what has ended from it, to give back the ones and settle the others.
    """

    def __init__(self, jobs: Iterable[Leased]) -> None:
        # Protects what follows; taken alone.
        self._mutex = threading.Lock()
        self._waiting = deque(jobs)
        self._ended: list[Ended] = []
        self._bytes = 0
        self._due = 0.0  # when the first of the ended ones is to be settled
        self._since = time.monotonic()
        self.longest = 0.0  # seconds, of one job

    def next(self) -> Leased | None:
        """Return the job to run now; None if there is none any more."""
        with self._mutex:
            self._since = time.monotonic()
            return self._waiting.popleft() if self._waiting else None

    def put_back(self, job: Leased) -> None:
        """Let a job wait again that did not begin."""
        with self._mutex:
            self._waiting.appendleft(job)

    def end(self, ended: Ended) -> bool:
        """Keep an outcome; tell whether the ended jobs are to be settled now."""
        now = time.monotonic()
        with self._mutex:
            self.longest = max(self.longest, now - self._since)
            if not self._ended:
                self._due = now + BUDGET
            self._ended.append(ended)
            if not isinstance(ended.outcome, Done):
                return True
            self._bytes += len(ended.outcome.result or b"")
            return now >= self._due or self._bytes > _LARGEST or not self._waiting

    def take_ended(self) -> list[Ended]:
        """Return the jobs to settle; nobody else gets them."""
        with self._mutex:
            ended, self._ended, self._bytes = self._ended, [], 0
            return ended

    def take_waiting(self) -> list[Leased]:
        """Return the jobs that did not begin; they are not begun any more."""
        with self._mutex:
            waiting = list(self._waiting)
            self._waiting.clear()
            return waiting

    def is_late(self) -> bool:
        """Tell whether others wait for a job that takes long."""
        with self._mutex:
            if not self._waiting and not self._ended:
                return False
            return time.monotonic() - self._since > LATE
