"""Charges cards, badly; see the package for how it fails."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from payment_service.ledger import Account, Book, Ledger

UNLUCKY = "willow"  # the customer whose bank does not answer


class PaymentError(Exception):
    """A charge failed; the same key may be tried again."""


class AnswerLostError(PaymentError):
    """The line broke before the answer came; the card may be charged or not."""


class BankSilentError(PaymentError):
    """The customer's bank does not answer; nothing was charged."""


class KeyReusedError(PaymentError):
    """One idempotency key was used for two different charges: a bug, not bad luck."""


@dataclass(frozen=True, slots=True)
class PaymentService:
    """The service, with its memory in one file."""

    path: Path

    @property
    def ledger(self) -> Ledger:
        """The file in which it remembers."""
        return Ledger(self.path, silent_at_first=(UNLUCKY,))

    def charge(self, *, customer: str, cents: int, key: str) -> str:
        """Charge a customer once for a key, and return the receipt's number.

        Calling again with the same key never charges again. Raises
        :class:`AnswerLostError` on every odd call of a key, :class:`BankSilentError` while
        the customer's bank is out of order, :class:`KeyReusedError` if the key was used
        for somebody or something else.
        """
        with self.ledger.opened() as book:
            account = book.accounts.setdefault(
                key, Account(customer=customer, cents=cents)
            )
            if (account.customer, account.cents) != (customer, cents):
                raise KeyReusedError(
                    f"Key {key} belongs to a charge of {account.customer}."
                )
            account.calls += 1
            if customer in book.silent_banks_of:
                raise BankSilentError(f"The bank of {customer} does not answer.")
            if not account.receipt:
                account.receipt = f"receipt-{key[:8]}"
            if account.calls % 2:
                raise AnswerLostError("The line broke after the card was charged.")
            return account.receipt

    def book(self) -> Book:
        """Return everything that the service remembers."""
        return self.ledger.read()

    def repair(self) -> None:
        """Make every bank answer again."""
        with self.ledger.opened() as book:
            book.silent_banks_of = []

    def disturb(self) -> None:
        """Silence the bank of the unlucky customer, as at the beginning."""
        with self.ledger.opened() as book:
            book.silent_banks_of = [UNLUCKY]
