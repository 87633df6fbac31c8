"""The report is one line for each step, plain unless somebody watches."""

from __future__ import annotations

import io
import os
from unittest import TestCase
from unittest.mock import patch

from demo.report import Report


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class ReportTests(TestCase):
    def test_a_pipe_gets_finished_lines_without_colours(self) -> None:
        out = io.StringIO()
        with Report(2, out).step("The worker starts") as said:
            self.assertEqual("", out.getvalue())
            said.append("process 7")

        self.assertRegex(
            out.getvalue(), r"^ok  1/2  The worker starts \(process 7\)  \d+\.\d s\n$"
        )

    def test_a_failed_step_has_no_tick(self) -> None:
        out = io.StringIO()
        with self.assertRaises(ValueError), Report(2, out).step("The worker starts"):
            raise ValueError

        self.assertEqual("x  1/2  The worker starts\n", out.getvalue())

    def test_an_interrupted_step_did_not_fail(self) -> None:
        out = io.StringIO()
        with self.assertRaises(KeyboardInterrupt), Report(2, out).step("It starts"):
            raise KeyboardInterrupt

        self.assertEqual("   1/2  It starts: interrupted\n", out.getvalue())

    def test_a_terminal_shows_the_step_in_progress_and_then_a_green_tick(self) -> None:
        out = Terminal()
        with (
            patch.dict(os.environ, {"TERM": "xterm", "NO_COLOR": ""}),
            Report(2, out).step("The worker starts"),
        ):
            self.assertTrue(out.getvalue().endswith("The worker starts ..."))

            out.seek(0)
            out.truncate()

        self.assertTrue(out.getvalue().startswith("\r\x1b[K\x1b[32m✓\x1b[0m  1/2"))

    def test_no_color_is_respected(self) -> None:
        out = Terminal()
        with (
            patch.dict(os.environ, {"TERM": "xterm", "NO_COLOR": "1"}),
            Report(2, out).step("The worker starts"),
        ):
            pass

        self.assertNotIn("\x1b[32m", out.getvalue())
        self.assertIn("✓", out.getvalue())

    def test_steps_are_numbered(self) -> None:
        out = io.StringIO()
        report = Report(12, out)
        for _ in range(11):
            with report.step("again"):
                pass

        self.assertIn("11/12  again", out.getvalue().splitlines()[-1])
