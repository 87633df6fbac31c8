"""Entries in the admin's log: who did what to which job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.http import HttpRequest

from django_nobroker.models import DeadJob

from .text import is_sendable, visible

__all__ = ["CHANGE", "DELETION", "record"]


def record(
    request: HttpRequest, job_ids: Iterable[str], flag: int, message: str
) -> None:
    """Write one entry for each job; ``flag`` is ``CHANGE`` or ``DELETION``."""
    # Databases refuse NUL and lone surrogates; what was done is written down anyway.
    jobs = [
        DeadJob(id=job_id if is_sendable(job_id) else visible(job_id))
        for job_id in job_ids
    ]
    if jobs:
        LogEntry.objects.log_actions(
            user_id=cast(int, request.user.pk),  # a page needs a login
            queryset=jobs,
            action_flag=flag,
            change_message=message,
        )
