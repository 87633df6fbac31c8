"""Tasks that the jobs of the tests belong to."""

from __future__ import annotations

from django_nobroker import task


@task
def charge(order):
    """Exists; no test runs it."""
