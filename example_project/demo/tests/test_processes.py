"""Processes are started, watched, stopped and killed."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
from pathlib import Path
from unittest import TestCase

from demo.failure import DemoError
from demo.processes import Process, free_port

WAITS = "import time; print('here', flush=True); time.sleep(600)"


class ProcessTests(TestCase):
    def setUp(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.log = folder / "log"

    def start(self, code: str) -> Process:
        command = [sys.executable, "-c", code]
        process = Process.start("helper", command, os.environ, self.log)
        self.addCleanup(process.kill)
        return process

    def test_what_it_prints_is_in_the_log_and_the_next_one_goes_on(self) -> None:
        for word in ("one", "two"):
            process = self.start(f"import sys; print('{word}', file=sys.stderr)")
            process.popen.wait()

        self.assertEqual("one\ntwo\n", self.log.read_text())

    def test_one_that_ended_by_itself_is_noticed(self) -> None:
        process = self.start("raise SystemExit(3)")
        process.popen.wait()

        with self.assertRaisesRegex(DemoError, "The helper ended with status 3"):
            process.check()

    def test_one_that_runs_passes_the_check_and_can_be_stopped(self) -> None:
        process = self.start(WAITS)
        process.check()

        process.stop()

        self.assertEqual(-signal.SIGTERM, process.popen.returncode)
        process.stop()  # A second time, nothing is left to do.

    def test_a_killed_one_cannot_clean_up(self) -> None:
        process = self.start(WAITS)

        process.kill()

        self.assertEqual(-signal.SIGKILL, process.popen.returncode)


class FreePortTests(TestCase):
    def test_a_free_port_can_be_used(self) -> None:
        with socket.create_server(("127.0.0.1", free_port(None))):
            pass

    def test_a_wanted_port_that_is_taken_is_an_error(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]

            with self.assertRaisesRegex(DemoError, f"Port {port} cannot be used"):
                free_port(port)
