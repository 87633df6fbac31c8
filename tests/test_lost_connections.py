"""Connections that break, or do not, in a database that outlives them."""

from __future__ import annotations

import pytest
from django.db import ProgrammingError, connections

from django_nobroker import surroundings


@pytest.fixture
def file_database(monkeypatch, tmp_path, django_db_blocker):
    """A database that keeps its connection, as they do in production."""
    given = connections["default"].settings_dict
    database = {**given, "NAME": str(tmp_path / "db.sqlite3"), "CONN_MAX_AGE": None}
    monkeypatch.setitem(connections.settings, "file", database)
    with django_db_blocker.unblock():
        yield connections["file"]
        connections["file"].close()
    del connections["file"]


def test_a_connection_that_was_lost_costs_one_job(file_database):
    file_database.ensure_connection()
    file_database.connection.close()
    with pytest.raises(ProgrammingError), file_database.cursor() as cursor:
        cursor.execute("SELECT 1")
    surroundings.roll_back()
    surroundings.tidy()

    with file_database.cursor() as cursor:
        assert cursor.execute("SELECT 1").fetchone() == (1,)


def test_a_connection_that_works_is_kept(file_database):
    file_database.ensure_connection()
    before = file_database.connection
    surroundings.roll_back()
    surroundings.tidy()

    assert file_database.connection is before
