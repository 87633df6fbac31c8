"""A payment is a job that is tried again, and charges once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.urls import reverse
from django_nobroker.testing import run_tasks

from membership.models import Payment
from membership.service import payment_service
from membership.tasks import collect_payment
from payment_service.service import UNLUCKY, PaymentError
from photo_club.testing import SiteTestCase


class PayTests(SiteTestCase):
    def pay(self) -> Any:
        return self.client.post(reverse("membership:pay"), follow=True)

    def test_only_members_pay(self) -> None:
        self.assertRedirects(self.pay(), "/log-in/?next=/membership/pay/")

    def test_the_page_names_the_price(self) -> None:
        self.log_in()

        page = self.client.get(reverse("membership:membership"))

        self.assertContains(page, "Pay 24.00 €")

    def test_paying_twice_is_one_payment_and_one_job(self) -> None:
        self.log_in()

        page = self.pay()
        self.pay()

        self.assertContains(page, '<span class="job waiting"')
        self.assertEqual(1, Payment.objects.count())
        self.assertEqual(1, len(run_tasks()))

    def test_a_payment_without_a_job_gets_its_second_chance(self) -> None:
        Payment.objects.create(member=self.log_in())

        self.pay()

        self.assertEqual(1, len(run_tasks()))

    def test_a_lost_answer_is_tried_again(self) -> None:
        self.log_in()
        self.pay()

        run_tasks()

        page = self.client.get(reverse("membership:membership"))
        self.assertContains(page, "waiting for another try: the first one failed")
        self.assertIsNone(Payment.objects.get().paid_at)


class CollectPaymentTests(SiteTestCase):
    """The task itself, called as often as a worker might call it."""

    def setUp(self) -> None:
        super().setUp()
        self.payment = Payment.objects.create(member=self.log_in())

    def call(self) -> None:
        with suppress(PaymentError):
            collect_payment.call(self.payment.pk)

    def test_run_many_times_it_charges_once(self) -> None:
        for _ in range(5):
            self.call()

        (account,) = payment_service().book().accounts.values()
        self.assertEqual(5, account.calls)
        self.payment.refresh_from_db()
        self.assertEqual(account.receipt, self.payment.receipt)

    def test_the_moment_of_payment_is_the_first_one(self) -> None:
        self.call()
        self.call()
        first = Payment.objects.get().paid_at
        self.assertIsNotNone(first)

        self.call()
        self.call()

        self.assertEqual(first, Payment.objects.get().paid_at)

    def test_a_payment_that_is_gone_is_not_tried_again(self) -> None:
        result = collect_payment.enqueue(4711)
        run_tasks()
        result.refresh()

        self.assertEqual(("FAILED", 1), (result.status, result.attempts))


class ServicePageTests(SiteTestCase):
    def test_it_is_for_the_staff(self) -> None:
        self.log_in()
        self.assertEqual(
            302, self.client.get(reverse("membership:service")).status_code
        )
        page = self.client.post(reverse("membership:switch"), {"switch": "repair"})

        self.assertIn("/admin/login/", page["location"])
        self.assertEqual([UNLUCKY], payment_service().book().silent_banks_of)

    def test_the_switch_repairs_and_disturbs(self) -> None:
        self.log_in(is_staff=True)
        switch = reverse("membership:switch")

        page = self.client.post(switch, {"switch": "repair"}, follow=True)
        self.assertContains(page, "Every bank answers.")
        self.assertEqual([], payment_service().book().silent_banks_of)

        self.assertEqual(400, self.client.post(switch, {"switch": "?"}).status_code)
        page = self.client.post(switch, {"switch": "disturb"}, follow=True)
        self.assertContains(page, "out of order")
        self.assertEqual([UNLUCKY], payment_service().book().silent_banks_of)
