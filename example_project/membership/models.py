"""What a member pays, and whether it arrived."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models

YEARLY_CENTS = 2400


class Payment(models.Model):
    """A member's one payment for this year."""

    member = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="payment"
    )
    cents = models.PositiveIntegerField(default=YEARLY_CENTS)
    # Goes with every call to the payment service, which charges once for a key
    # however often it is called: a job runs at least once, not exactly once.
    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    # The job that collects the money; empty until it is enqueued.
    job_id = models.CharField(max_length=200, blank=True, editable=False)
    receipt = models.CharField(max_length=40, blank=True, editable=False)
    paid_at = models.DateTimeField(null=True, editable=False)

    objects: ClassVar = models.Manager["Payment"]()

    def __str__(self) -> str:
        return f"{self.amount} from {self.member}"

    @property
    def amount(self) -> str:
        """The amount as people write it."""
        return f"{self.cents / 100:.2f} €"
