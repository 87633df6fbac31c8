"""The index: an LMDB replica of the log that anybody may delete at any time.

Invariants, named in the code:

I1  The position up to which the log is applied is written in the same LMDB
    transaction as what was applied.
I2  On any doubt, or any error of LMDB, the replica is thrown away and built anew
    from the log. Trouble with it never fails an acknowledgement.
I3  It lives outside the store, on memory-backed storage where there is some, named
    by everything that makes it this one: a power cut deletes it, a copy of the store
    does not find it, and two PID namespaces never share one (LMDB marks readers by
    PID). It is opened once per process and never used across a fork.
I4  Catching up takes no lock of the store. Each slice is one LMDB transaction.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import TypeVar

import lmdb

from . import due, framing, host, place, replay
from .changes import Changes
from .errors import StorageError
from .log import STRETCH, DroppedError, Log
from .tables import Tables

T = TypeVar("T")

FORMAT = 6
_MAP_SIZE = 1 << 36  # address space, not memory
_READERS = 2048
_ATTEMPTS = 2  # the second one finds no file of the first


class Index:
    """One store's replica in this PID namespace, of this user, in this boot."""

    def __init__(
        self, log: Log, *, store_id: bytes, boot_id: bytes, root: str | None = None
    ) -> None:
        self._log = log
        self._name = place.name(store_id, boot_id, os.stat(log.directory), FORMAT)
        self._forks = 0  # how many ancestors had an environment open when they forked
        self.name = self._name
        self.roots = host.index_roots(root)
        self._env: lmdb.Environment | None = None
        # Protects the opening and closing of the environment; taken last, after
        # thread lock and flock.
        self._mutex = threading.Lock()

    # --- opening and throwing away -------------------------------------------

    def _environment(self) -> lmdb.Environment:
        env = self._env
        if env is not None:
            return env
        with self._mutex:
            if self._env is None:
                self._env = self._open()
            return self._env

    def _open(self) -> lmdb.Environment:
        problem: Exception | None = None
        for root in self.roots:
            try:
                parent = place.private_directory(f"{root}/nobroker-{os.getuid()}")
                with place.locked(parent):
                    place.sweep(parent, keep=self.name)
                    return self._open_in(f"{parent}/{self.name}")
            except (OSError, lmdb.Error) as error:
                problem = error
        msg = f"No place for the index in {', '.join(self.roots)}: {problem}"
        raise StorageError(msg) from problem

    def _open_in(self, path: str) -> lmdb.Environment:
        problem: lmdb.Error | None = None
        for _ in range(_ATTEMPTS):
            place.private_directory(path)
            place.write_note(path, self._log.directory)
            try:
                env = lmdb.open(
                    path,
                    map_size=_MAP_SIZE,
                    max_readers=_READERS,
                    max_spare_txns=4,
                    sync=False,
                    metasync=False,
                    readahead=False,
                    mode=0o600,
                )
            except lmdb.Error as error:
                problem = error
            else:
                place.close_on_exec(path)
                env.reader_check()
                if self._fits(env):
                    return env
                env.close()
            place.throw_away(path)
        msg = f"the index in {path} could not be opened"
        raise StorageError(msg) from problem

    def _fits(self, env: lmdb.Environment) -> bool:
        """Compare the mark with the log: an index of another history must go."""
        with env.begin() as txn:
            meta = Tables(txn).meta
        if meta.last < 0:
            return True
        try:
            found = self._log.record_at(meta.last)
        except Exception:  # noqa: BLE001 - whatever it is, the index cannot be trusted
            return False
        return found is not None and framing.checksum(found[1]) == meta.sum

    def discard(self, env: lmdb.Environment | None = None) -> None:
        """Throw the replica away (keeps I2); the next use builds it anew."""
        with self._mutex:
            current = self._env
            if current is None or (env is not None and env is not current):
                return
            path = current.path()
            self._env = None
            with place.locked(os.path.dirname(path)):
                place.throw_away(path)

    # An environment is let go, never closed by hand: closing it under a thread that
    # reads just then would kill the process. It closes with its last transaction.

    def close(self) -> None:
        """Let the environment go; the replica stays for other processes."""
        with self._mutex:
            self._env = None

    def after_fork(self) -> None:
        """Open a replica of the child's own on the next use (keeps I3).

        The parent's environment must not be closed here, not even by the garbage
        collector: that would wait for transactions of threads that only the parent
        has, and would free the parent's places in the table of readers. So it is
        kept for ever, and since LMDB then takes its files for open, children have
        a replica under another name, which they share.
        """
        self._mutex = threading.Lock()
        env, self._env = self._env, None
        if env is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(env))
            self._forks += 1
            self.name = f"{self._name}+{self._forks}"

    # --- reading ---------------------------------------------------------------

    @property
    def used_bytes(self) -> int:
        """Bytes of the replica that hold something."""
        pages = self._environment().stat()
        used = pages["branch_pages"] + pages["leaf_pages"] + pages["overflow_pages"]
        return int(pages["psize"] * used)

    def read(
        self, end: int, action: Callable[[Tables], T], *, wall: float, boot: float
    ) -> T:
        """Catch up to ``end``, make due what is due, then call ``action`` on the view.

        A broken replica is thrown away and the action tried once more.
        """
        try:
            return self._read(end, action, wall, boot)
        except lmdb.Error:
            self.discard()
            return self._read(end, action, wall, boot)

    def _read(
        self, end: int, action: Callable[[Tables], T], wall: float, boot: float
    ) -> T:
        # All on one environment: another thread may throw it away meanwhile, and
        # the next one begins empty.
        env = self.catch_up(end)
        self._make_due(env, wall=wall, boot=boot)
        with env.begin() as txn:
            return action(Tables(txn))

    # --- catching up -------------------------------------------------------------

    def catch_up(self, end: int, *, near: int = 0) -> lmdb.Environment:
        """Apply the log up to ``end``, or until less than ``near`` bytes are left."""
        size = STRETCH
        while True:
            env = self._environment()
            with env.begin() as txn:
                applied = Tables(txn).meta.applied
            if applied > end:
                # Somebody else went on meanwhile, or the log was cut behind our
                # back: then this is another history.
                if self._fits(env):
                    return env
                self.discard(env)
                continue
            if end - applied <= near:
                return env
            with env.begin(write=True) as txn:
                changes = Changes(txn)
                if self.apply_stretch(changes, end, size):
                    changes.flush()
                    size = STRETCH
                    continue
            if size > end - applied:
                return env  # what is left is an unfinished transaction
            size *= 2

    def apply_stretch(self, changes: Changes, end: int, size: int = STRETCH) -> bool:
        """Apply the next stretch before ``end``; False if nothing whole is in it."""
        start = changes.meta.applied
        if start < self._log.first:
            if start:
                raise lmdb.Error("what this index has not seen yet is dropped")
            start = self._log.first
            changes.begin_at(start)
        if start >= end:
            return True
        try:
            decoded = self._log.decode(start, end, size)
        except DroppedError as error:
            raise lmdb.Error(str(error)) from error
        whole = replay.whole_transactions(
            decoded,
            lambda position: self._log.was_acknowledged(position, end),
        )
        if whole.end == start:
            return False
        changes.apply(whole.records, whole.sizes)
        changes.note_damage(
            damage for damage in decoded.damage if damage.start < whole.end
        )
        last, total = -1, ""
        if whole.end == decoded.end and decoded.records:
            last, total = decoded.records[-1].at, decoded.sum
        elif whole.records:
            last = whole.records[-1].at
            found = self._log.record_at(last)
            total = framing.checksum(found[1]) if found is not None else ""
        changes.mark(whole.end, last, total)
        return True

    def _make_due(self, env: lmdb.Environment, *, wall: float, boot: float) -> None:
        """Let waiting times end that are over, as counters and order should say."""
        while True:
            with env.begin() as txn:
                if next(due.due(Tables(txn), wall=wall, boot=boot), None) is None:
                    return
            with env.begin(write=True) as txn:
                changes = Changes(txn)
                due.make_due(changes, wall=wall, boot=boot)
                changes.flush()

    def begin_changes(self) -> Changes:
        """Begin a write transaction; whoever asked commits or aborts its ``txn``."""
        return Changes(self._environment().begin(write=True))

    def empty(self) -> None:
        """Forget everything, for all who share the replica: they follow the log anew."""
        env = self._environment()
        with env.begin(write=True) as txn:
            txn.drop(env.open_db(None, txn=txn), delete=False)

    def catch_changes_up(self, changes: Changes, end: int) -> None:
        """Apply the small rest of the log before ``end``, all of whose transactions are whole."""
        size = STRETCH
        while changes.meta.applied < end:
            if not self.apply_stretch(changes, end, size):
                size *= 2
        if changes.meta.applied > end:
            msg = "the index is ahead of the log"
            raise lmdb.Error(msg)
