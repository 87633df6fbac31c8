"""The settings of the tests, with an admin site of the project's own."""

from __future__ import annotations

from tests import settings as of_the_tests
from tests.settings import *  # noqa: F403

INSTALLED_APPS = [
    "tests.admin.own_site.OwnAdminConfig" if app == "django.contrib.admin" else app
    for app in of_the_tests.INSTALLED_APPS
]
TASKS = {"default": {"BACKEND": "tests.admin.fake_engine.FakeBackend"}}
