"""A project's own admin site, named as ``default_site`` of the admin app."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.admin.apps import AdminConfig


class OwnSite(admin.AdminSite):
    """Differs by its header."""

    site_header = "Our own site"


class OwnAdminConfig(AdminConfig):
    """Stands for ``django.contrib.admin`` in ``INSTALLED_APPS``."""

    default_site = "tests.admin.own_site.OwnSite"
