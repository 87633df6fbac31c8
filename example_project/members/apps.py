"""Members and their sign-up."""

from __future__ import annotations

from django.apps import AppConfig


class MembersConfig(AppConfig):
    """Members and their sign-up."""

    name = "members"
