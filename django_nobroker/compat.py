"""The only module that imports Django's Tasks framework, from wherever it lives.

Django 6.0 and later bring ``django.tasks``; Django 5.2 needs the ``django-tasks``
backport. Where both are installed Django's own wins, so that results, errors and
signals are always those of one framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import django
from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING or django.VERSION >= (6, 0):
    from django.tasks import (
        DEFAULT_TASK_BACKEND_ALIAS,
        DEFAULT_TASK_QUEUE_NAME,
        Task,
        TaskContext,
        TaskResult,
        TaskResultStatus,
        task_backends,
    )
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import TaskError
    from django.tasks.exceptions import (
        InvalidTask,
        TaskResultDoesNotExist,
        TaskResultMismatch,
    )
    from django.tasks.signals import task_enqueued, task_finished, task_started
else:
    try:
        from django_tasks import exceptions as _exceptions
    except ModuleNotFoundError as error:
        raise ImproperlyConfigured(
            f"Django {django.get_version()} has no Tasks framework of its own. "
            'Install the backport: pip install "django-nobroker[backport]".'
        ) from error
    from django_tasks import (
        DEFAULT_TASK_BACKEND_ALIAS,
        DEFAULT_TASK_QUEUE_NAME,
        TaskContext,
        TaskResult,
        TaskResultStatus,
        task_backends,
    )
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskError
    from django_tasks.exceptions import TaskResultDoesNotExist, TaskResultMismatch
    from django_tasks.signals import task_enqueued, task_finished, task_started

    # The backport is about to take over Django's name for it.
    InvalidTask = getattr(_exceptions, "InvalidTask", None) or (
        _exceptions.InvalidTaskError
    )

__all__ = [
    "DEFAULT_TASK_BACKEND_ALIAS",
    "DEFAULT_TASK_QUEUE_NAME",
    "HAS_OWN_FRAMEWORK",
    "AnyResult",
    "BaseTaskBackend",
    "GenericTask",
    "InvalidTask",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
    "TaskResultStatus",
    "import_framework",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]

HAS_OWN_FRAMEWORK = django.VERSION >= (6, 0)


if TYPE_CHECKING:
    AnyResult = TaskResult[..., Any]
    GenericTask = Task
else:
    AnyResult = TaskResult

    class GenericTask:
        """``Task`` with type parameters, which Django's own refuses at run time."""

        def __class_getitem__(cls, _parameters: Any) -> type[Task]:
            """Forget the parameters: they are for the type checker only."""
            return Task


def import_framework() -> None:
    """Import what registers the framework's system checks and log lines.

    Django imports ``django.tasks`` only when somebody uses it, and without that
    ``manage.py check`` would never ask a backend.
    """
    if not HAS_OWN_FRAMEWORK:
        from django_tasks import checks, signals  # noqa: F401
