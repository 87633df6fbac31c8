from __future__ import annotations

import pytest
from django.contrib.admin.models import CHANGE, LogEntry

from django_nobroker.admin import audit


@pytest.fixture
def request_of_user(rf, django_user_model, db):
    request = rf.post("/")
    request.user = django_user_model.objects.create_user("ann")
    return request


@pytest.mark.parametrize("job_ids", [[], ["a"], ["a", "b", "c"]])
def test_each_job_gets_one_entry(request_of_user, job_ids):
    audit.record(request_of_user, job_ids, CHANGE, "Requeued.")

    entries = LogEntry.objects.order_by("object_id")
    assert [entry.object_id for entry in entries] == job_ids
    assert {entry.get_change_message() for entry in entries} <= {"Requeued."}
    assert {str(entry.content_type) for entry in entries} <= {"Nobroker | dead letter"}


def test_ids_of_any_sort_can_be_written(request_of_user):
    job_ids = ["nul\0", "surrogate\ud800", "<b>", "x" * 200, "ü/_2F"]

    audit.record(request_of_user, job_ids, CHANGE, "Requeued.")

    assert {entry.object_id for entry in LogEntry.objects.all()} == {
        r"nul\x00",
        r"surrogate\ud800",
        "<b>",
        "x" * 200,
        "ü/_2F",
    }
