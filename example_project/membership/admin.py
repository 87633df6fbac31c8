"""Payments in the admin, to look at."""

# mypy: disable-error-code="type-arg"
# Django's classes take type arguments in its stubs only.

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from membership.models import Payment


@admin.register(Payment)
class PaymentAdmin(admin.ModelAdmin):
    """Payments, the newest first."""

    list_display = ("member", "amount", "paid_at", "receipt", "job_id")
    list_filter = (("paid_at", admin.EmptyFieldListFilter),)
    search_fields = ("member__username", "job_id", "receipt")
    readonly_fields = ("key", "job_id", "receipt", "paid_at")
    date_hierarchy = "created_at"

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        """Members pay on the site."""
        return False
