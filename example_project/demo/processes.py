"""Starts, watches, stops and kills the processes of the demo."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from demo.failure import DemoError

PATIENCE = 15.0  # seconds for an orderly end


@dataclass(slots=True)
class Process:
    """A running process and the log of what it prints."""

    name: str
    log: Path
    popen: subprocess.Popen[bytes]

    @classmethod
    def start(
        cls,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
    ) -> Process:
        """Start a process; a log that is there already is continued."""
        with log.open("ab") as output:
            popen = subprocess.Popen(  # noqa: S603  The command is the demo's own.
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A group of its own: Ctrl-C reaches the demo alone, which then
                # stops everything in order, and a kill reaches all of its children.
                start_new_session=True,
            )
        return cls(name, log, popen)

    @property
    def pid(self) -> int:
        """The process id."""
        return self.popen.pid

    def check(self) -> None:
        """Raise :class:`DemoError` if the process has ended by itself."""
        if self.popen.poll() is not None:
            raise DemoError(
                f"The {self.name} ended with status {self.popen.returncode}."
            )

    def kill(self) -> None:
        """End the process as a power cut would: it cannot clean up."""
        # The number of a process that was waited for may be another one's by now.
        if self.popen.poll() is None:
            self._signal(signal.SIGKILL)
            self.popen.wait()

    def stop(self) -> None:
        """Ask the process to end, and kill it if it does not."""
        if self.popen.poll() is None:
            self._signal(signal.SIGTERM)
            try:
                self.popen.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # It may end in this very moment.
            os.killpg(self.pid, number)


def free_port(wanted: int | None) -> int:
    """Return a free port on the loopback address; complain if the wanted one is not."""
    with socket.socket() as probe:
        # As the web server will: a port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted or 0))
        except OSError as error:
            reason = f"Port {wanted} cannot be used: {error.strerror}."
            raise DemoError(reason) from None
        port: int = probe.getsockname()[1]
    return port
