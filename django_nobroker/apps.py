"""The Django app: registers its checks, and opens nothing."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class NobrokerConfig(AppConfig):
    """``INSTALLED_APPS += ["django_nobroker"]``."""

    name = "django_nobroker"
    verbose_name = _("Nobroker")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Make ``manage.py check`` ask the backends, and register our own checks."""
        from . import checks, compat

        compat.import_framework()
        checks.register_checks()
