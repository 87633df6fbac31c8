"""Opening a named queue of a store, and closing it; rows of the index as jobs."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, cast

from django_nobroker import limits
from django_nobroker.engine import claim, history, states
from django_nobroker.engine.claim import Claimed
from django_nobroker.engine.errors import QueueClosedError, StorageError
from django_nobroker.engine.recovery import RecoveryReport
from django_nobroker.engine.settle import Held
from django_nobroker.engine.shared import close_store, open_store
from django_nobroker.engine.states import Row
from django_nobroker.engine.store import Store
from django_nobroker.engine.vfs import Access
from django_nobroker.retry import BackoffPolicy
from django_nobroker.serializers import Serializer

from .coding import Undecodable, coding
from .job import Job, JobState, T

_STATES = tuple(JobState)
_DAMAGED = Undecodable(None, "its record is damaged")
_FORGOTTEN = Undecodable(None, "it was dropped when the job was forgotten")


class OpenQueue(Generic[T]):
    """What all parts of a queue share: its options, its store, its lifetime."""

    def __init__(  # noqa: PLR0913 - the options of a queue, as documented
        self,
        path: str | os.PathLike[str],
        name: str = "default",
        *,
        fsync: bool = True,
        visibility_timeout: float = 30.0,
        max_attempts: int = 5,
        backoff: BackoffPolicy | None = None,
        lock_timeout: float = 10.0,
        max_pending: int | None = None,
        result_ttl: float = 0.0,
        job_id_ttl: float = 86400.0,
        file_mode: int = 0o660,
        group: str | int | None = None,
        index_directory: str | os.PathLike[str] | None = None,
        serializer: Serializer[T] | None = None,
        read_only: bool = False,
    ) -> None:
        """Open the store, repairing what a crash left; see :attr:`recovery`.

        ``serializer`` turns payloads into bytes and back; None is JSON.

        With ``read_only`` it is only looked at, which needs permission to read and no
        more: nothing is made and nothing repaired, verbs that write raise
        ``StorageError``, and so does opening what is not there.
        """
        self.name = limits.name(name, "name")
        self.visibility_timeout = limits.seconds(
            visibility_timeout, "visibility_timeout", above=0
        )
        self.max_attempts = limits.whole(max_attempts, "max_attempts", at_least=1)
        self.lock_timeout = max(0.0, limits.seconds(lock_timeout, "lock_timeout"))
        if max_pending is not None:
            limits.whole(max_pending, "max_pending", at_least=1)
        self.max_pending = max_pending
        self.result_ttl = limits.seconds(result_ttl, "result_ttl", at_least=0)
        self.job_id_ttl = limits.seconds(job_id_ttl, "job_id_ttl", at_least=0)
        self.backoff = limits.instance(
            BackoffPolicy() if backoff is None else backoff, BackoffPolicy, "backoff"
        )
        self._coding = coding(serializer)
        self.fsync = limits.instance(fsync, bool, "fsync")
        self.read_only = limits.instance(read_only, bool, "read_only")
        if index_directory is None:
            index_directory = os.environ.get("NOBROKER_INDEX_DIR") or None
        self._store = open_store(
            path,
            read_only=self.read_only,
            access=Access.of(file_mode, group),
            index_root=None
            if index_directory is None
            else str(Path(index_directory).absolute()),
            lock_timeout=self.lock_timeout,
        )
        self._closed = False
        self._clock = self._store.clock

    @property
    def recovery(self) -> RecoveryReport:
        """What opening the store found and repaired."""
        return self._store.recovery

    def close(self) -> None:
        """Close the queue; later calls raise ``QueueClosedError``."""
        if not self._closed:
            self._closed = True
            close_store(self._store)

    def __enter__(self) -> Self:
        """Return the queue; it is closed when the block ends."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the queue."""
        self.close()

    def __repr__(self) -> str:
        """Show where the queue is."""
        return f"Queue({self._store.directory!r}, {self.name!r})"

    def opened(self) -> Store:
        """Return the store; raises ``QueueClosedError`` after ``close``."""
        if self._closed:
            msg = "The queue is closed."
            raise QueueClosedError(msg)
        return self._store

    def writable(self) -> Store:
        """Return the store to write to; raises ``StorageError`` if it is for reading."""
        store = self.opened()
        if self.read_only:
            msg = "The queue is open for reading only"
            raise StorageError(errno.EROFS, msg, store.directory)
        return store

    def retry_delay(self, _queue: str, attempt: int) -> float:
        """Return the seconds after which a failed attempt is followed by the next."""
        return self.backoff.delay(attempt)

    def as_job(self, position: int, row: Row) -> Job[T]:
        """Return a row of the index as a job, whatever its payload is."""
        return self._job(position, row, self._shown(row))

    def as_leased(self, claimed: Claimed, text: bytes) -> Job[T] | Undecodable:
        """Return a job that was leased; ``text`` is its payload."""
        payload = self._coding.decode(text)
        if isinstance(payload, Undecodable):
            return payload
        held = Held(claimed.position, claimed.token)
        return self._job(claimed.position, claimed.row, payload, held=held)

    def _shown(self, row: Row) -> T:
        """Return a job's payload; an ``Undecodable`` stands for what is none.

        That is no ``T``, but a type that said so would burden every handler, which
        never sees one.
        """
        if row.state == states.FORGOTTEN:
            return cast("T", _FORGOTTEN)
        text = history.payload(self._store, row)
        return cast("T", _DAMAGED if text is None else self._coding.decode(text))

    def _job(
        self, position: int, row: Row, payload: T, *, held: Held | None = None
    ) -> Job[T]:
        store = self._store
        return Job(
            id=row.id,
            payload=payload,
            queue=self.name,
            priority=row.priority,
            state=_STATES[row.state],
            attempts=row.attempts,
            max_attempts=row.max_attempts,
            available_at=row.available_at,
            enqueued_at=row.enqueued_at,
            last_error=_last_error(store, row),
            position=position,
            owner=self,
            held=held,
            held_in="" if held is None else store.directory,
        )

    def as_it_is(self, job: Job[T], row: Row, *, held: Held | None = None) -> Job[T]:
        """Return a job as it is after something happened to it."""
        return self._job(job.position, row, job.payload, held=held)


def _last_error(store: Store, row: Row) -> str | None:
    found = history.failure(store, row)
    if found is None:
        return None
    failure = found[0]
    if failure.type == claim.LOST.type or not failure.type:
        return failure.message
    return f"{failure.type}: {failure.message}"
