from __future__ import annotations

import pytest
from django.http import Http404

from django_nobroker.admin.stores import Store, all_stores, chosen_store, fault
from django_nobroker.compat import BaseTaskBackend

from .fake_engine import FakeEngine


class EnginelessBackend(BaseTaskBackend):
    def enqueue(self, task, args, kwargs):
        raise NotImplementedError


ENGINELESS = {"BACKEND": f"{__name__}.EnginelessBackend"}


def test_each_backend_with_an_engine_is_a_store(configure, settings):
    configure(beta=FakeEngine(), alpha=FakeEngine())
    settings.TASKS = {"default": ENGINELESS, **settings.TASKS}

    assert all_stores() == [Store("beta"), Store("alpha")]


def test_finding_the_stores_opens_none(configure):
    configure(default=AssertionError("it was opened"))

    assert all_stores() == [Store("default")]
    with pytest.raises(AssertionError, match="it was opened"):
        _ = all_stores()[0].engine


def test_a_backend_that_cannot_be_imported_is_a_store_with_a_fault(settings):
    settings.TASKS = {"default": {"BACKEND": "nowhere.Backend"}}

    assert all_stores() == [Store("default")]


def test_the_address_chooses_the_store():
    stores = [Store("alpha"), Store("beta")]

    assert chosen_store(stores, None) == Store("alpha")
    assert chosen_store(stores, "beta") == Store("beta")
    assert chosen_store([], None) is None
    with pytest.raises(Http404):
        chosen_store(stores, "gamma")
    with pytest.raises(Http404):
        chosen_store([], "")


def test_the_options_of_a_backend_say_what_is_secret(configure, settings):
    configure(default=FakeEngine())
    assert Store("default").redaction.hides("password")

    backend = settings.TASKS["default"]
    settings.TASKS = {"default": {**backend, "OPTIONS": {"ADMIN_REDACT": ["pin"]}}}
    assert Store("default").redaction.hides("pin")
    assert not Store("default").redaction.hides("password")


def test_an_error_without_a_text_is_told_by_its_class():
    assert fault(OSError()) == "OSError"
    assert fault(OSError(5, "Input/output error")) == "[Errno 5] Input/output error"
    assert len(fault(OSError("x" * 5000))) == 1000
