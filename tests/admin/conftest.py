"""A store in memory, users with chosen permissions, and a reader of pages."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from . import fake_engine

BACKEND = f"{fake_engine.__name__}.FakeBackend"


@pytest.fixture
def configure(settings, monkeypatch):
    """Return a function that sets one backend up for each given engine."""

    def set_up(**engines):
        monkeypatch.setattr(fake_engine, "ENGINES", engines)
        settings.TASKS = {alias: {"BACKEND": BACKEND} for alias in engines}

    return set_up


@pytest.fixture
def engine(configure):
    """The engine of the only backend."""
    engine = fake_engine.FakeEngine()
    configure(default=engine)
    return engine


@pytest.fixture
def login(db):
    """Return a function that logs a staff user in who has just these permissions."""

    def log_in(*codenames, superuser=False, client=None):
        user = User.objects.create_user(
            f"user{User.objects.count()}", is_staff=True, is_superuser=superuser
        )
        found = Permission.objects.filter(
            content_type__app_label="django_nobroker", codename__in=codenames
        )
        assert len(codenames) == len(found), "a permission does not exist"
        user.user_permissions.set(found)
        client = client or Client()
        client.force_login(user)
        client.user = user
        return client

    return log_in


@pytest.fixture
def boss(login):
    """A client that may do everything."""
    return login(superuser=True)
