"""Connections, transactions, language and time zone around a job."""

from __future__ import annotations

import contextvars
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections, transaction
from django.utils import timezone, translation

from django_nobroker import surroundings

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_a_job_left_uncommitted_is_rolled_back():
    transaction.set_autocommit(False)
    User.objects.create(username="ada")
    surroundings.roll_back()

    assert connection.get_autocommit()
    assert not User.objects.exists()
    User.objects.create(username="bob")


def test_an_atomic_block_that_was_never_left_is_ended():
    """In a thread, as in a worker: the last connection holds the test's database."""

    def job():
        before = connections["default"]
        transaction.atomic().__enter__()
        User.objects.create(username="ada")
        surroundings.roll_back()
        User.objects.create(username="bob")
        after = connections["default"]
        surroundings.close_for_good(after)
        return before, after

    with ThreadPoolExecutor(1) as pool:
        before, after = pool.submit(job).result()

    assert after is not before
    assert not after.in_atomic_block
    assert [user.username for user in User.objects.all()] == ["bob"]


def test_a_transaction_of_the_caller_is_left_alone():
    with transaction.atomic():
        User.objects.create(username="ada")
        keep = surroundings.open_transactions()
        surroundings.roll_back(keep=keep)
        assert connection.in_atomic_block

    assert keep == {"default"}
    assert User.objects.exists()


def test_a_connection_that_was_never_opened_stays_closed(monkeypatch):
    monkeypatch.setattr(connections["default"], "connection", None)
    surroundings.roll_back()

    assert connections["default"].connection is None


def test_old_connections_are_closed_and_queries_forgotten(monkeypatch, settings):
    settings.DEBUG = True
    closed = []
    monkeypatch.setattr(
        connections["default"],
        "close_if_unusable_or_obsolete",
        lambda: closed.append("default"),
    )
    connection.queries_log.append({"sql": "SELECT 1"})
    surroundings.prepare()
    surroundings.tidy()

    assert closed == ["default", "default"]
    assert len(connection.queries_log) == 0


def test_an_error_while_tidying_is_logged_and_not_raised(monkeypatch, caplog):
    def fail():
        raise RuntimeError("the cache is gone")

    monkeypatch.setattr(surroundings, "close_caches", fail)
    surroundings.tidy()

    assert "the cache is gone" in caplog.text


def test_language_and_time_zone_are_the_defaults_again(settings):
    def inside():
        translation.activate("de")
        timezone.activate("Asia/Tokyo")
        surroundings.forget_request()
        return translation.get_language(), timezone.get_current_timezone_name()

    found = contextvars.copy_context().run(inside)

    assert found == (settings.LANGUAGE_CODE, settings.TIME_ZONE)
