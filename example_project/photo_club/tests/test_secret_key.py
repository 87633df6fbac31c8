"""The secret key is made once, and only its owner can read it."""

from __future__ import annotations

import stat
import tempfile
from pathlib import Path
from unittest import TestCase

from photo_club.secret_key import stored_key


class StoredKeyTests(TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = self.folder / "new" / "secret_key"

    def test_it_stays_the_same(self) -> None:
        self.assertEqual(stored_key(self.path), stored_key(self.path))

    def test_it_is_long_and_another_folder_has_another(self) -> None:
        self.assertGreaterEqual(len(stored_key(self.path)), 50)
        self.assertNotEqual(stored_key(self.path), stored_key(self.folder / "other"))

    def test_only_its_owner_can_read_it(self) -> None:
        stored_key(self.path)

        self.assertEqual(0o600, stat.S_IMODE(self.path.stat().st_mode))
        self.assertEqual([self.path], list(self.path.parent.iterdir()))
