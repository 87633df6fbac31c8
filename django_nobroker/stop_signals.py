"""Turns SIGTERM and SIGINT into a stop: the first one asks, the second one insists."""

from __future__ import annotations

import logging
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

logger = logging.getLogger("django_nobroker.worker")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_END = b"\0"  # no signal has this number


class StopSignals:
    """While it is entered, the first signal sets ``stop``, the second one exits.

    The exit status is then 1. Outside the main thread, where Python cannot receive
    signals, entering it changes nothing.

    A handler that set the event itself could deadlock: the main thread may be inside
    that very event when the signal arrives. So the interpreter writes the signal's
    number into a pipe, and a thread reads it there.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._is_installed = False

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._before_fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._before: dict[signal.Signals, Any] = {
            number: signal.signal(number, _noted) for number in _SIGNALS
        }
        self._listener = threading.Thread(
            target=self._listen, name="nobroker-signals", daemon=True
        )
        self._listener.start()
        self._is_installed = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._is_installed:
            return
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._before_fd)
        os.write(self._write, _END)
        self._listener.join()
        os.close(self._write)
        os.close(self._read)

    def _listen(self) -> None:
        while (byte := os.read(self._read, 1)) != _END:
            # Other handlers of the process write their numbers here as well.
            if byte[0] not in _SIGNALS:
                continue
            name = signal.Signals(byte[0]).name
            if self._stop.is_set():
                logger.warning("%s again: exiting now, jobs are left running.", name)
                # Threads that run jobs would keep an orderly exit waiting.
                os._exit(1)
            logger.info("%s: finishing what runs. Once more to exit at once.", name)
            self._stop.set()


def _noted(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: that there is a handler makes the interpreter write to the pipe."""
