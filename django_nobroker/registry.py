"""From a dotted path to the task of that name, and nothing but a task.

A path that comes out of the log is only ever run if it names a task: whoever can
write there cannot call arbitrary functions.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from django.utils.module_loading import autodiscover_modules

from .compat import InvalidTask, Task


class UnknownTaskError(LookupError):
    """No task of that path exists in the code as it is deployed now."""


def resolve(path: str) -> Task[..., Any]:
    """Return the task whose ``module_path`` is ``path``, importing its module.

    Raises:
        UnknownTaskError: if there is no such module or no such task in it.
        Exception: whatever the module raises while it is imported.
    """
    module_path, _, name = path.rpartition(".")
    if not all(part.isidentifier() for part in path.split(".")) or not module_path:
        raise UnknownTaskError(f"{path[:200]!r} is not the path of a task.")
    found = getattr(_module(module_path, path), name, None)
    if not isinstance(found, Task) or found.module_path != path:
        raise UnknownTaskError(f"{module_path} has no task named {name!r}.")
    return found


def _module(module_path: str, path: str) -> object:
    module = sys.modules.get(module_path)
    if module is not None:
        return module
    try:
        return importlib.import_module(module_path)
    except ModuleNotFoundError as error:
        # Only a missing part of the path itself means that the task is unknown;
        # a dependency that is not installed is a fault of the deployment.
        if error.name and f"{module_path}.".startswith(f"{error.name}."):
            raise UnknownTaskError(f"{path}: no module {error.name!r}.") from error
        raise


def check_reachable(task: Task[..., Any]) -> None:
    """Refuse a task that a worker could not find again by its path.

    Raises:
        InvalidTask: for a task defined in a script's ``__main__``, or hidden
            behind another object of the same name.
    """
    path = task.module_path
    module_path, _, name = path.rpartition(".")
    found = getattr(sys.modules.get(module_path), name, None)
    if module_path == "__main__" or not isinstance(found, Task):
        raise InvalidTask(
            f"A worker would not find {path}: the task must be a variable of that "
            "name in a module that the worker can import."
        )
    if found.func != task.func:
        raise InvalidTask(
            f"A worker would run another function: {path} is not the function of "
            "this task. Give the task's function a name of its own."
        )


def discover() -> None:
    """Import the ``tasks`` module of every installed app.

    Raises:
        Exception: whatever one of them raises while it is imported.
    """
    autodiscover_modules("tasks")
