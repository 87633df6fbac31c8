"""The payment service that the settings name."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from payment_service.service import PaymentService


def payment_service() -> PaymentService:
    """Return the service; asked for at each call, so that tests can move it."""
    return PaymentService(Path(settings.PAYMENT_LEDGER))  # type: ignore[misc]
