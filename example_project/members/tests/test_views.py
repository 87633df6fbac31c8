"""Signing up enqueues the welcome mail; logging in and out work."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.core import mail
from django.urls import reverse
from django_nobroker.testing import run_tasks

from members.tasks import send_welcome_mail
from photo_club.testing import SiteTestCase

FORM = {
    "username": "alder",
    "email": "alder@club.example",
    "password1": "forest-path-19",
    "password2": "forest-path-19",
}


class SignUpTests(SiteTestCase):
    def test_the_page_has_a_form(self) -> None:
        page = self.client.get(reverse("members:sign-up"))

        self.assertContains(page, 'name="email"')

    def test_the_mail_is_sent_by_a_worker_and_not_by_the_view(self) -> None:
        page = self.client.post(reverse("members:sign-up"), FORM, follow=True)

        self.assertContains(page, "Hello, alder")
        self.assertContains(page, '<span class="job waiting"')
        self.assertEqual([], mail.outbox)

        run_tasks()

        self.assertEqual(["alder@club.example"], mail.outbox[0].to)
        self.assertIn("alder", mail.outbox[0].subject)
        self.assertIn("Dear alder", mail.outbox[0].body)
        home = self.client.get(reverse("home"))
        self.assertContains(home, '<span class="job done"')

    def test_a_bad_form_makes_neither_a_member_nor_a_job(self) -> None:
        page = self.client.post(reverse("members:sign-up"), {**FORM, "email": "alder"})

        self.assertContains(page, "valid email")
        self.assertFalse(get_user_model().objects.exists())
        self.assertEqual([], run_tasks())


class WelcomeMailTests(SiteTestCase):
    def test_a_name_is_not_escaped_as_if_the_mail_were_html(self) -> None:
        self.client.post(reverse("members:sign-up"), {**FORM, "username": "a+b@c"})
        get_user_model().objects.update(username="O'Alder")

        run_tasks()

        self.assertIn("Dear O'Alder", mail.outbox[0].body)

    def test_sent_twice_it_is_the_same_mail(self) -> None:
        user = self.log_in(email="alder@club.example")
        send_welcome_mail.enqueue(user.pk)
        send_welcome_mail.enqueue(user.pk)
        run_tasks()

        first, second = mail.outbox
        self.assertEqual(
            first.extra_headers["Message-ID"], second.extra_headers["Message-ID"]
        )

    def test_a_member_who_is_gone_is_not_tried_again(self) -> None:
        result = send_welcome_mail.enqueue(4711)
        run_tasks()
        result.refresh()

        self.assertEqual("FAILED", result.status)
        self.assertEqual(1, result.attempts)


class LogInTests(SiteTestCase):
    def test_a_member_logs_in_and_out(self) -> None:
        get_user_model().objects.create_user("alder", password="forest-path-19")
        form = {"username": "alder", "password": "forest-path-19"}

        page = self.client.post(reverse("members:log-in"), form, follow=True)
        self.assertContains(page, "Hello, alder")

        page = self.client.post(reverse("members:log-out"), follow=True)
        self.assertContains(page, "Log in")
