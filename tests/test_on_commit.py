"""Enqueueing on commit inside Django's ``TestCase``, which never commits."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.test import TestCase

from django_nobroker.testing import run_tasks
from tests.sample_tasks import add
from tests.stores import memory  # noqa: F401 - a fixture


@pytest.mark.usefixtures("memory")
class OnCommitTest(TestCase):
    def test_captured_callbacks_enqueue(self):
        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            result = add.enqueue_on_commit(1, b=2)
            assert run_tasks() == []

        assert len(callbacks) == 1
        assert [one.id for one in run_tasks()] == [result.id]

    def test_an_inner_block_that_is_rolled_back_takes_its_jobs_with_it(self):
        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            try:
                with transaction.atomic():
                    add.enqueue_on_commit(1)
                    transaction.get_connection().ensure_connection()
                    raise RuntimeError  # noqa: TRY301 - a view that fails
            except RuntimeError:
                add.enqueue_on_commit(2)

        assert len(callbacks) == 1
        assert [one.args for one in run_tasks()] == [[2]]
