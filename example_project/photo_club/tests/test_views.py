"""The home page, the statuses as JSON, and the admin."""

from __future__ import annotations

from django.urls import reverse
from django_nobroker.testing import run_tasks

from members.tasks import send_welcome_mail
from photo_club.testing import SiteTestCase


class HomeTests(SiteTestCase):
    def test_a_visitor_is_invited(self) -> None:
        page = self.client.get("/")

        self.assertContains(page, "Become a member")

    def test_pages_have_no_inline_script_or_style(self) -> None:
        for path in ("/", "/sign-up/", "/log-in/", "/gallery/"):
            with self.subTest(path=path):
                text = self.client.get(path).content.decode()
                self.assertNotRegex(text, r"<style|style=|<script(?![^>]*src=)| on\w+=")


class JobsTests(SiteTestCase):
    def test_a_job_is_waiting_and_then_done(self) -> None:
        user = self.log_in(email="alder@club.example")
        result = send_welcome_mail.enqueue(user.pk)
        address = f"{reverse('jobs')}?id={result.id}"

        status = self.client.get(address).json()[result.id]
        self.assertEqual(("waiting", True), (status["word"], status["open"]))

        run_tasks()

        status = self.client.get(address).json()[result.id]
        self.assertEqual(("done", False), (status["word"], status["open"]))

    def test_an_unknown_job_is_called_unknown(self) -> None:
        answer = self.client.get(f"{reverse('jobs')}?id=nothing").json()

        self.assertEqual("unknown", answer["nothing"]["word"])

    def test_no_job_and_too_many_are_refused(self) -> None:
        many = "&".join(f"id={number}" for number in range(51))
        for query in ("", many):
            with self.subTest(query=query):
                self.assertEqual(400, self.client.get(f"/jobs/?{query}").status_code)


class AdminTests(SiteTestCase):
    def test_the_staff_sees_the_club_in_the_admin(self) -> None:
        self.log_in(is_staff=True, is_superuser=True)

        for path in ("", "gallery/photo/", "membership/payment/"):
            with self.subTest(path=path):
                page = self.client.get(f"/admin/{path}")
                self.assertEqual(200, page.status_code)
