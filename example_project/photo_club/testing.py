"""How the tests of the example run: each with folders and a queue of its own."""

from __future__ import annotations

import copy
import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import TestSuite

from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import SimpleTestCase, TestCase
from django.test.runner import DiscoverRunner

if TYPE_CHECKING:
    from django.contrib.auth.models import User

SAMPLE_PHOTOS = settings.BASE_DIR / "sample_photos"


class ExampleRunner(DiscoverRunner):
    """Runs the tests of this project, wherever it is started from."""

    def build_suite(self, test_labels: Any = None, **kwargs: Any) -> TestSuite:
        """Find the tests; without labels, those below this project."""
        return super().build_suite(test_labels or [str(settings.BASE_DIR)], **kwargs)


class OwnFiles(SimpleTestCase):
    """Gives each test empty folders and an empty queue.

    Django rolls the database back after each test; jobs and files are not in
    it, so they get a temporary directory.
    """

    def setUp(self) -> None:
        """Move everything that the site writes into a temporary directory."""
        super().setUp()
        # Many tests make a job fail on purpose, which is logged as it should be.
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        self.var = Path(self.enterContext(tempfile.TemporaryDirectory()))
        queue: dict[str, Any] = copy.deepcopy(settings.TASKS["default"])
        queue["OPTIONS"]["TEST"] = {"DIRECTORY": self.var / "jobs"}
        self.enterContext(
            self.settings(
                MEDIA_ROOT=self.var / "media",
                PAYMENT_LEDGER=self.var / "payments.json",
                TASKS={"default": queue},
                # A slow hash protects none of these members.
                PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
            )
        )


class SiteTestCase(OwnFiles, TestCase):
    """A test of the site, with files, a queue and a database of its own."""

    def log_in(self, username: str = "alder", **fields: Any) -> User:
        """Make a member and log them in."""
        user = get_user_model().objects.create_user(username, **fields)
        self.client.force_login(user)
        return user
