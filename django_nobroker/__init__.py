"""A durable job queue in a directory, for Django's Tasks API and for plain Python.

The names below are imported when they are first used, so that a script which
only wants the queue never imports Django.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .control import Reject, Retry
    from .declaration import task
    from .plain.async_queue import AsyncQueue
    from .plain.inspecting import QueueStats
    from .plain.job import Job, JobState
    from .plain.queue import Queue
    from .plain.worker import Worker
    from .retry import BackoffPolicy
    from .seam import WorkerStats

__version__ = "0.1.0"

_MODULES = {
    "AsyncQueue": "plain.async_queue",
    "BackoffPolicy": "retry",
    "Job": "plain.job",
    "JobState": "plain.job",
    "Queue": "plain.queue",
    "QueueStats": "plain.inspecting",
    "Reject": "control",
    "Retry": "control",
    "Worker": "plain.worker",
    "WorkerStats": "seam",
    "task": "declaration",
}

__all__ = [
    "AsyncQueue",
    "BackoffPolicy",
    "Job",
    "JobState",
    "Queue",
    "QueueStats",
    "Reject",
    "Retry",
    "Worker",
    "WorkerStats",
    "__version__",
    "task",
]


def __getattr__(name: str) -> object:
    """Import a public name from the module that defines it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported yet or not."""
    return sorted(__all__)
