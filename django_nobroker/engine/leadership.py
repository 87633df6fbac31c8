"""Committing together: one thread leads, those that come meanwhile follow.

The first thread that wants to commit takes the lead: it writes and syncs. The
threads that arrive during its write and its sync queue up; the next leader, one
of them, commits them all with one write and one sync.

Invariants, named in the code:

L1  A leader never leaves without naming the next one or saying that there is none.
L2  Every request is answered: by its own leader, or, if a signal stopped that
    one, by the next.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import TypeVar

from . import doorbell
from .commit import Committer
from .record import Enqueue
from .transaction import Transaction
from .vfs import Vfs
from .writer import Request, Writer

T = TypeVar("T")


class Leadership:
    """How the threads of one process reach the write path of a store."""

    def __init__(
        self, directory: str, writer: Writer, committer: Committer, vfs: Vfs
    ) -> None:
        self._directory = directory
        self._writer = writer
        self._committer = committer
        self._vfs = vfs
        # Protects the two fields below; held for a few instructions, taken alone.
        self._gate = threading.Lock()
        self._waiting: list[Request[object]] = []
        self._leading = False

    def append(self, record: Enqueue, timeout: float) -> None:
        """Write one new job that asks for no decision; not durable when it returns."""
        _, rung = self._writer.append(record, timeout)
        if rung:
            doorbell.ring(self._directory, rung, self._vfs)

    def append_durably(self, record: Enqueue, timeout: float) -> None:
        """Write one new job that asks for no decision, and make it durable."""
        with self._gate:
            alone = not self._leading
            self._leading = True
        if not alone:
            self.run_durably(
                lambda transaction: transaction.enqueue(record),
                timeout=timeout,
                indexed=False,
            )
            return
        try:
            end, rung = self._writer.append(record, timeout)
            self._committer.commit(end)
        finally:
            with self._gate:
                self._name_next()
        if rung:
            doorbell.ring(self._directory, rung, self._vfs)

    def run(
        self, decide: Callable[[Transaction], T], *, timeout: float, indexed: bool
    ) -> T:
        """Make one decision and write it; it is not durable yet when this returns.

        Raises what ``decide`` raises, ``LockTimeoutError`` after ``timeout`` seconds
        without the lock, and ``StorageError``.
        """
        request: Request[T] = Request(decide)
        rung = self._writer.write([request], timeout, indexed=indexed)
        if rung:
            doorbell.ring(self._directory, rung, self._vfs)
        if request.error is not None:
            raise request.error
        return request.answer  # type: ignore[return-value]

    def run_durably(
        self, decide: Callable[[Transaction], T], *, timeout: float, indexed: bool
    ) -> T:
        """Make one decision, write it, and return when it is on disk.

        Threads that come while another one writes and syncs are gathered and
        committed together by the next of them.
        """
        if indexed:
            self._writer.approach()
        request: Request[T] = Request(decide)
        with self._gate:
            self._waiting.append(request)  # type: ignore[arg-type]
            follow = self._leading
            self._leading = True
        if follow:
            try:
                request.wake.acquire()
            except BaseException:
                self._abandon(request)  # type: ignore[arg-type]
                raise
        if not request.settled:
            self._lead(request, timeout)  # type: ignore[arg-type]
        if request.error is not None:
            raise request.error
        return request.answer  # type: ignore[return-value]

    # --- leading and following ------------------------------------------------------

    def _lead(self, own: Request[object], timeout: float) -> None:
        batch: list[Request[object]] = []
        try:
            with self._gate:
                batch, self._waiting = self._waiting, []
            new = [request for request in batch if not request.written]
            rung = self._writer.write(new, timeout, indexed=False)
            end = max((request.written for request in batch), default=0)
            if end:
                self._committer.commit(end)
            if rung:
                doorbell.ring(self._directory, rung, self._vfs)
        except Exception as error:  # noqa: BLE001 - it is handed to everybody it concerns
            for request in batch:
                if request.error is None:
                    request.error = error if request is own else copy.copy(error)
        except BaseException:
            # A signal stopped this thread (keeps L2). The others go on: what is written for
            # them already is only to be made durable by the next leader.
            with self._gate:
                self._waiting = [r for r in batch if r is not own] + self._waiting
            batch = [own]
            raise
        finally:
            for request in batch:
                request.settled = True
                if request is not own:
                    request.wake.release()
            with self._gate:
                self._name_next()

    def _name_next(self) -> None:
        """Hand the lead on (keeps L1); the caller holds the gate."""
        following = self._waiting[0] if self._waiting else None
        self._leading = following is not None
        if following is not None:
            following.wake.release()

    def _abandon(self, request: Request[object]) -> None:
        """Leave the queue: a signal stopped a thread that was waiting in it."""
        with self._gate:
            if request not in self._waiting:
                return  # somebody writes it just now
            self._waiting.remove(request)
            if not request.wake.locked():
                self._name_next()  # the lead was handed to this thread

    def after_fork(self) -> None:
        """Forget the threads of the parent process."""
        self._gate = threading.Lock()
        self._waiting, self._leading = [], False
