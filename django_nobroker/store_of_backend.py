"""From the alias of a backend to the store that the command line works on."""

from __future__ import annotations

from .chosen_backend import log_backend
from .cli.place import Place, configured_place
from .compat import DEFAULT_TASK_BACKEND_ALIAS
from .problems import DJANGO, Commands


def place_of(alias: str) -> Place:
    """Return the store of ``TASKS[alias]``; nothing is opened or made.

    Raises:
        ImproperlyConfigured: if there is no such backend, or its options are wrong.
    """
    return configured_place(log_backend(alias).configuration.options, _commands(alias))


def _commands(alias: str) -> Commands:
    if alias == DEFAULT_TASK_BACKEND_ALIAS:
        return DJANGO
    return Commands(
        work=lambda _queue: f"manage.py runworker --backend {alias}",
        verb=lambda verb: f"manage.py nobroker --backend {alias} {verb}",
    )
