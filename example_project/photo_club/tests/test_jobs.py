"""Statuses read as sentences."""

from __future__ import annotations

from unittest import TestCase

from photo_club.jobs import JobStatus


class TextTests(TestCase):
    def test_what_was_tried_in_vain_is_said(self) -> None:
        for word, failed, text in (
            ("waiting", 0, "waiting"),
            ("waiting", 1, "waiting for another try: the first one failed"),
            ("waiting", 2, "waiting for another try: 2 failed"),
            ("running", 1, "running"),
            ("done", 0, "done"),
            ("done", 1, "done at try 2"),
            ("failed", 1, "failed"),
            ("failed", 4, "failed 4 times"),
            ("unknown", 0, "unknown"),
        ):
            with self.subTest(word=word, failed=failed):
                status = JobStatus(id="a", word=word, failed_attempts=failed)
                self.assertEqual(text, status.text)

    def test_only_waiting_and_running_jobs_are_open(self) -> None:
        words = ("waiting", "running", "done", "failed", "unknown")

        still = [word for word in words if JobStatus(id="a", word=word).is_open]

        self.assertEqual(["waiting", "running"], still)
