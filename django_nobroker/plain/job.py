"""A job as the plain face shows it: a detached snapshot with its verbs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Protocol

from msgspec import Struct

from django_nobroker.engine.settle import Held

if TYPE_CHECKING:
    # Python knows defaults of type variables from 3.13 on; checkers know them before.
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")


class JobState(StrEnum):
    """Where a job stands; a delayed job is a ready one with a future time.

    Of a forgotten job only the id is left: it ended, a compaction took it out, and
    its id blocks another job until ``job_id_ttl`` is over.
    """

    READY = "ready"
    LEASED = "leased"
    DONE = "done"
    DEAD = "dead"
    DISCARDED = "discarded"
    FORGOTTEN = "forgotten"


class Verbs(Protocol[T]):
    """What a job asks of the queue that it was got from."""

    def ack(self, job: Job[T]) -> None:
        """Finish it."""

    def nack(
        self, job: Job[T], *, error: str | None = None, delay: float | None = None
    ) -> Job[T]:
        """End this attempt in failure."""

    def fail(self, job: Job[T], *, error: str | None = None) -> Job[T]:
        """Send it to the dead letters."""

    def extend(self, job: Job[T], seconds: float) -> Job[T]:
        """Hold it for longer."""

    def release(self, job: Job[T]) -> Job[T]:
        """Give it back."""


class Job(Struct, Generic[T], frozen=True, kw_only=True, eq=False, gc=False):
    """One job at one moment; what happens to it later does not show here.

    Times are seconds since the epoch. A job that ``lease`` returned carries the
    proof of its lease, so its verbs work; on any other they raise
    ``NotLeasedError``.

    ``payload`` is an :class:`Undecodable` where it cannot be decoded, which no job that
    was leased ever shows. ``created`` tells that this enqueue made the job; if not,
    ``conflict`` tells that it was asked to with another payload than the job has.
    """

    # A job refers to its payload and its queue, neither of which refers to jobs, so
    # the collector of cycles need not walk over the thousands of a batch (gc=False).
    id: str
    payload: T
    queue: str
    priority: int
    state: JobState
    attempts: int
    max_attempts: int
    available_at: float
    enqueued_at: float
    last_error: str | None = None
    created: bool = False
    conflict: bool = False
    position: int = -1
    owner: Any = None  # the queue it was got from
    held: Held | None = None  # the proof of its lease
    held_in: str = ""  # the directory of the store that leased it

    def ack(self) -> None:
        """Finish the job; see :meth:`Queue.ack`."""
        self._queue.ack(self)

    def nack(self, *, error: str | None = None, delay: float | None = None) -> Job[T]:
        """End this attempt in failure; see :meth:`Queue.nack`."""
        return self._queue.nack(self, error=error, delay=delay)

    def fail(self, *, error: str | None = None) -> Job[T]:
        """Send the job to the dead letters; see :meth:`Queue.fail`."""
        return self._queue.fail(self, error=error)

    def extend(self, seconds: float) -> Job[T]:
        """Hold the job for longer; see :meth:`Queue.extend`."""
        return self._queue.extend(self, seconds)

    def release(self) -> Job[T]:
        """Give the job back; see :meth:`Queue.release`."""
        return self._queue.release(self)

    @property
    def _queue(self) -> Verbs[T]:
        queue: Verbs[T] = self.owner
        return queue

    def __repr__(self) -> str:
        """Show the job without the proof of its lease."""
        return (
            f"Job(id={self.id!r}, queue={self.queue!r}, state={self.state.value!r}, "
            f"attempts={self.attempts}, payload={self.payload!r})"
        )
