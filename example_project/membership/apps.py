"""What membership costs, and whether it is paid."""

from __future__ import annotations

from django.apps import AppConfig


class MembershipConfig(AppConfig):
    """What membership costs, and whether it is paid."""

    name = "membership"
