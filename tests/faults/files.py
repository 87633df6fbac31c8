"""A file system that records every call and fails, tears or interrupts chosen ones."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from django_nobroker.engine.vfs import Vfs

#: Every system call of the seam, by the name that the seam gives it.
CALLS = (
    "open",
    "close",
    "read",
    "pread",
    "write",
    "fsync",
    "fdatasync",
    "ftruncate",
    "stat",
    "fstat",
    "listdir",
    "rename",
    "unlink",
    "flock",
    "mkdir",
    "mkfifo",
    "chmod",
    "chown",
    "utime",
    "rmdir",
)
SYNCS = frozenset({"fsync", "fdatasync"})


class Call(NamedTuple):
    """One system call that was asked for."""

    name: str
    arguments: tuple[Any, ...]


class Killed(BaseException):
    """Stands for the death of the process: nothing after it may run its course."""


#: Called with a call and the way to make it really happen; its answer is the call's.
Fault = Callable[[Call, Callable[[], Any]], Any]


class FaultyFiles(Vfs):
    """The real file system until a fault is planned.

    ``calls`` holds every call since the last ``forget``. Calls are numbered from
    0 on, and a fault meets the first call that its condition accepts.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._faults: list[tuple[Callable[[int, Call], bool], Fault, bool]] = []
        self._mutex = threading.Lock()
        for name in CALLS:
            setattr(self, name, self._through(name, getattr(Vfs, name)))

    def _through(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any, **named: Any) -> Any:
            call = Call(name, arguments)
            with self._mutex:
                number = len(self.calls)
                self.calls.append(call)
                fault = self._meet(number, call)

            def happen() -> Any:
                return real(*arguments, **named)

            return happen() if fault is None else fault(call, happen)

        return made

    def _meet(self, number: int, call: Call) -> Fault | None:
        for index, (condition, fault, again) in enumerate(self._faults):
            if condition(number, call):
                if not again:
                    del self._faults[index]
                return fault
        return None

    # --- planning ------------------------------------------------------------

    def forget(self) -> None:
        """Count calls from 0 on again and let planned faults go."""
        with self._mutex:
            self.calls.clear()
            self._faults.clear()

    def at(self, number: int, fault: Fault) -> None:
        """Let a fault meet the call of that number."""
        self._faults.append((lambda n, _: n == number, fault, False))

    def on(
        self,
        name: str,
        fault: Fault,
        *,
        again: bool = False,
        where: Callable[[Call], bool] = lambda _: True,
    ) -> None:
        """Let a fault meet the next call of that name, or every one of them."""
        self._faults.append(
            (lambda _, call: call.name == name and where(call), fault, again)
        )

    def names(self) -> list[str]:
        """Return the names of the calls so far."""
        return [call.name for call in self.calls]

    def count(self, *names: str) -> int:
        """Return how many calls of those names there were."""
        return sum(call.name in names for call in self.calls)


def fails(number: int) -> Fault:
    """Refuse the call with an errno; nothing of it happens."""

    def fault(call: Call, happen: Callable[[], Any]) -> Any:
        raise OSError(number, os.strerror(number))

    return fault


def raises(error: BaseException) -> Fault:
    """Raise instead of the call."""

    def fault(call: Call, happen: Callable[[], Any]) -> Any:
        raise error

    return fault


def raises_after(error: BaseException) -> Fault:
    """Make the call, then raise, as a signal does that arrives during it."""

    def fault(call: Call, happen: Callable[[], Any]) -> Any:
        with contextlib.suppress(OSError):
            happen()
        raise error

    return fault


def writes_short(size: int, number: int = errno.ENOSPC) -> Fault:
    """Write only ``size`` bytes; the rest is then refused with an errno."""

    def fault(call: Call, happen: Callable[[], Any]) -> Any:
        fd, data = call.arguments
        if not size:
            raise OSError(number, os.strerror(number))
        return os.write(fd, data[:size])

    return fault


def lets(action: Callable[[], object]) -> Fault:
    """Let something else happen just before the call."""

    def fault(call: Call, happen: Callable[[], Any]) -> Any:
        action()
        return happen()

    return fault


def lets_after(action: Callable[[], object]) -> Fault:
    """Let something else happen just after the call."""

    def fault(call: Call, happen: Callable[[], Any]) -> Any:
        answer = happen()
        action()
        return answer

    return fault
