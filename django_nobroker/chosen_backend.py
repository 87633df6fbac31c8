"""From an alias to its backend, if that keeps its jobs in a log."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from .backends import LogBackend
from .compat import task_backends
from .options import nearest


def log_backend(alias: str) -> LogBackend:
    """Return the backend ``TASKS[alias]``.

    Raises:
        ImproperlyConfigured: if there is none, or another one.
    """
    known = list(task_backends.settings)
    if alias not in known:
        raise ImproperlyConfigured(
            f"TASKS has no backend {alias!r}.{nearest(alias, known)} "
            f"Known: {', '.join(known)}."
        )
    backend = task_backends[alias]
    if not isinstance(backend, LogBackend):
        kind = type(backend)
        raise ImproperlyConfigured(
            f"TASKS[{alias!r}] is a {kind.__module__}.{kind.__qualname__}; only "
            "django_nobroker.backends.LogBackend keeps its jobs in a log."
        )
    return backend
