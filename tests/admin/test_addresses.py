from __future__ import annotations

import pytest
from django.contrib import admin
from hypothesis import given
from hypothesis import strategies as st

from django_nobroker.admin.addresses import candidates, page_url, quoted
from django_nobroker.models import DeadJob, Record

ids = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=200)


@given(ids)
def test_a_quoted_id_stands_for_that_id_first_of_all(job_id):
    assert candidates(quoted(job_id))[0] == job_id


@given(ids)
def test_a_typed_id_is_understood_too(job_id):
    assert job_id in candidates(job_id)


@pytest.mark.parametrize("job_id", [".", "..", "a/b", "?", "#"])
def test_no_id_leads_a_browser_elsewhere(job_id):
    assert not {"/", "?", "#"} & set(quoted(job_id))
    assert quoted(job_id).strip(".") != ""


def test_a_page_has_an_address_with_what_is_given():
    url = page_url(
        admin.site, DeadJob, "changelist", queue="a&b", task="", after=0, backend=None
    )

    assert url == "/admin/django_nobroker/deadjob/?queue=a%26b&after=0"


def test_a_page_that_a_site_lacks_has_no_address():
    assert page_url(admin.site, Record, "nowhere") == ""
