from __future__ import annotations

import io
import json

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.core import checks
from django.core.management import call_command
from django.db import connection

from django_nobroker import models

MODELS = [models.Queue, models.Job, models.DeadJob, models.Worker, models.Record]


def test_the_migration_is_up_to_date(db):
    call_command("makemigrations", "django_nobroker", check=True, dry_run=True)


def test_migrate_makes_the_permissions_and_no_table(db):
    codenames = Permission.objects.filter(
        content_type__app_label="django_nobroker"
    ).values_list("codename", flat=True)

    assert set(codenames) == {
        "view_queue",
        "view_job",
        "view_deadjob",
        "view_worker",
        "view_record",
        "pause_queue",
        "requeue_job",
        "discard_job",
        "view_payload",
    }
    tables = connection.introspection.table_names()
    assert [name for name in tables if name.startswith("django_nobroker")] == []


def test_there_is_a_model_for_each_page_of_the_admin():
    assert set(apps.get_app_config("django_nobroker").get_models()) == set(MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_asking_for_rows_finds_none_and_no_missing_table(model, db):
    assert list(model.objects.all()) == []
    assert not model.objects.filter(pk="a").exists()
    assert model._base_manager.count() == 0


@pytest.mark.parametrize("everything", [True, False])
def test_dumpdata_of_the_whole_project_works(db, everything):
    out = io.StringIO()

    call_command("dumpdata", use_base_manager=everything, stdout=out)

    models_in_dump = {row["model"] for row in json.loads(out.getvalue())}
    assert "auth.permission" in models_in_dump
    assert not [name for name in models_in_dump if name.startswith("django_nobroker")]


def test_flush_works(db):
    call_command("sqlflush", stdout=io.StringIO())


def test_the_models_pass_the_system_checks():
    assert checks.run_checks([apps.get_app_config("django_nobroker")]) == []
