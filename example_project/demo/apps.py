"""A guided tour of the site by real processes."""

from __future__ import annotations

from django.apps import AppConfig


class DemoConfig(AppConfig):
    """A guided tour of the site by real processes."""

    name = "demo"
