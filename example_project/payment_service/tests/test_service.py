"""The service fails as it promises, and charges once for a key."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from unittest import TestCase

from payment_service.service import (
    UNLUCKY,
    AnswerLostError,
    BankSilentError,
    KeyReusedError,
    PaymentError,
    PaymentService,
)


class PaymentServiceTests(TestCase):
    def setUp(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.service = PaymentService(folder / "payments.json")

    def charge(
        self, customer: str = "alder", cents: int = 2400, key: str = "k1"
    ) -> str:
        return self.service.charge(customer=customer, cents=cents, key=key)

    def test_every_other_call_of_a_key_fails(self) -> None:
        outcomes = []
        for _ in range(4):
            try:
                outcomes.append(self.charge())
            except AnswerLostError:
                outcomes.append("lost")

        self.assertEqual(["lost", "receipt-k1", "lost", "receipt-k1"], outcomes)

    def test_the_call_that_fails_has_charged(self) -> None:
        with self.assertRaises(AnswerLostError):
            self.charge()

        self.assertEqual("receipt-k1", self.service.book().accounts["k1"].receipt)

    def test_the_unlucky_customer_is_not_charged_until_the_repair(self) -> None:
        for _ in range(4):
            with self.assertRaises(BankSilentError):
                self.charge(UNLUCKY)
        self.assertEqual("", self.service.book().accounts["k1"].receipt)

        self.service.repair()

        with self.assertRaises(AnswerLostError):
            self.charge(UNLUCKY)
        self.assertEqual("receipt-k1", self.charge(UNLUCKY))

    def test_the_bank_can_be_silenced_again(self) -> None:
        self.service.repair()
        self.service.disturb()

        with self.assertRaises(BankSilentError):
            self.charge(UNLUCKY)

    def test_a_key_belongs_to_one_charge(self) -> None:
        with self.assertRaises(AnswerLostError):
            self.charge()

        with self.assertRaisesRegex(KeyReusedError, "belongs to a charge of alder"):
            self.charge(cents=4800)

    def test_it_remembers_across_restarts(self) -> None:
        with self.assertRaises(AnswerLostError):
            self.charge()

        self.service = PaymentService(self.service.path)

        self.assertEqual("receipt-k1", self.charge())

    def test_calls_at_the_same_time_are_all_counted(self) -> None:
        def call(_: int) -> None:
            with suppress(PaymentError):
                self.charge()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(call, range(40)))

        self.assertEqual(40, self.service.book().accounts["k1"].calls)
