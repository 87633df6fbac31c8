"""The browser of the demo uses the real site, over HTTP."""

from __future__ import annotations

import socket
from pathlib import Path
from unittest import TestCase

from django.contrib.auth import get_user_model
from django.test import LiveServerTestCase

from demo.browser import Browser
from demo.failure import DemoError
from photo_club.testing import SAMPLE_PHOTOS, OwnFiles


class BrowserTests(OwnFiles, LiveServerTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.browser = Browser(self.live_server_url)
        get_user_model().objects.create_user("alder", password="forest-path-19")

    def log_in(self) -> None:
        page = self.browser.get("/log-in/")
        fields = {"username": "alder", "password": "forest-path-19"}
        home = self.browser.submit(page, page.form("username", "password"), fields)
        self.assertIn("Hello, alder", home.text)

    def test_cookies_and_csrf_tokens_carry_it_through_a_log_in(self) -> None:
        self.log_in()

        self.assertIn("Hello, alder", self.browser.get("/").text)

    def test_another_browser_is_another_visitor(self) -> None:
        self.log_in()

        self.assertIn("Become a member", Browser(self.live_server_url).get("/").text)

    def test_a_file_arrives_as_it_is(self) -> None:
        self.log_in()
        photo = SAMPLE_PHOTOS / "paper-hills.png"

        page = self.browser.get("/gallery/upload/")
        fields: dict[str, str | Path] = {"title": "Grüße", "image": photo}
        shown = self.browser.submit(page, page.form("image"), fields)

        self.assertIn("Grüße", shown.text)
        (kept,) = (self.var / "media" / "photos").iterdir()
        self.assertEqual(photo.read_bytes(), kept.read_bytes())

    def test_an_error_names_the_page(self) -> None:
        with self.assertRaisesRegex(DemoError, "/gallery/4711/ answered 404"):
            self.browser.get("/gallery/4711/")

    def test_without_the_token_the_site_refuses(self) -> None:
        self.log_in()
        page = self.browser.get("/membership/")
        form = next(form for form in page.forms if form.action.endswith("/pay/"))
        form.values.clear()

        with self.assertRaisesRegex(DemoError, "answered 403"):
            self.browser.submit(page, form, {})

    def test_a_field_or_a_button_that_is_not_there_is_an_error(self) -> None:
        page = self.browser.get("/log-in/")
        form = page.form("username")

        with self.assertRaisesRegex(DemoError, "has no colour"):
            self.browser.submit(page, form, {"colour": "red"})
        with self.assertRaisesRegex(DemoError, "has no button action=go"):
            self.browser.submit(page, form, {}, press="action=go")

    def test_json_is_read(self) -> None:
        self.assertEqual("unknown", self.browser.data("/jobs/?id=a")["a"]["word"])


class NobodyThereTests(TestCase):
    def test_a_site_that_is_down_is_named(self) -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            site = f"http://127.0.0.1:{closed.getsockname()[1]}/"

            with self.assertRaisesRegex(DemoError, f"{site} did not answer"):
                Browser(site).get("")
