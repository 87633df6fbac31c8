"""Names for positional arguments, where the task is already loaded.

A page never imports a task: that would run a project's code because somebody looks
at an old job. If the web process has the module anyway, its signature says what the
arguments are called, and so which of them are secrets.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

from django_nobroker.compat import Task


def parameter_names(kind: str | None) -> list[str]:
    """Return the names of the positional parameters of a task, in their order.

    ``kind`` is the task's dotted path. The list is empty if the task is not loaded.
    """
    module_path, _, name = (kind or "").rpartition(".")
    try:
        # vars(), because getattr() could run a lazy import of the module.
        task: Any = vars(sys.modules[module_path]).get(name)
        # type(), because a lazy object would be woken up by isinstance().
        if not issubclass(type(task), Task):
            return []
        parameters = inspect.signature(task.func).parameters
    except (KeyError, TypeError, ValueError):
        return []
    names = [
        parameter.name
        for parameter in parameters.values()
        if parameter.kind
        in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}
    ]
    return names[1:] if task.takes_context else names
