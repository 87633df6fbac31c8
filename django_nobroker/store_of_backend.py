"""From the alias of a backend to the store that the command line works on."""

from __future__ import annotations

from . import arguments, registry
from .chosen_backend import log_backend
from .cli.place import Place, configured_place
from .cli.refusal import Refusal
from .compat import DEFAULT_TASK_BACKEND_ALIAS
from .payload import dumps
from .problems import DJANGO, Commands


def place_of(alias: str) -> Place:
    """Return the store of ``TASKS[alias]``; nothing is opened or made.

    Raises:
        ImproperlyConfigured: if there is no such backend, or its options are wrong.
    """
    return configured_place(
        log_backend(alias).configuration.options, _commands(alias), _remark
    )


def _commands(alias: str) -> Commands:
    if alias == DEFAULT_TASK_BACKEND_ALIAS:
        return DJANGO
    return Commands(
        work=lambda _queue: f"manage.py runworker --backend {alias}",
        verb=lambda verb: f"manage.py nobroker --backend {alias} {verb}",
    )


def _remark(payload: object) -> str:
    """Refuse the call of an unknown task; remark that a payload is no call at all."""
    try:
        call = arguments.load_call(dumps(payload))
        registry.resolve(call.path)
    except registry.UnknownTaskError as error:
        raise Refusal(f"No worker could run it: {error}") from error
    except ValueError:
        return (
            'This is not the call of a task, which is {"task": ..., "args": [...], '
            '"kwargs": {...}}: `runworker` makes it a dead letter.'
        )
    return ""
