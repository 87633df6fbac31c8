"""A durable job queue in a directory, for Django's Tasks API and for plain Python.

The names below are imported when they are first used, so that a script which
only wants the queue never imports Django.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .control import Reject, Retry
    from .declaration import task
    from .engine.backup import BackupReport
    from .engine.compaction import CompactionResult
    from .engine.diagnostics import Diagnostics
    from .engine.integrity import IntegrityReport
    from .engine.roster import WorkerEntry
    from .engine.scan import Finding
    from .engine.setaside import SetAside
    from .engine.verification import VerificationReport
    from .plain.async_queue import AsyncQueue
    from .plain.coding import Undecodable
    from .plain.inspecting import QueueStats
    from .plain.job import Job, JobState
    from .plain.queue import Queue
    from .plain.worker import Worker
    from .problems import Health
    from .retry import BackoffPolicy
    from .seam import WorkerStats
    from .serializers import JsonSerializer, MsgpackSerializer, Serializer

__version__ = "0.1.0"

_MODULES = {
    "AsyncQueue": "plain.async_queue",
    "BackoffPolicy": "retry",
    "BackupReport": "engine.backup",
    "CompactionResult": "engine.compaction",
    "Diagnostics": "engine.diagnostics",
    "Finding": "engine.scan",
    "Health": "problems",
    "IntegrityReport": "engine.integrity",
    "Job": "plain.job",
    "JobState": "plain.job",
    "JsonSerializer": "serializers",
    "MsgpackSerializer": "serializers",
    "Queue": "plain.queue",
    "QueueStats": "plain.inspecting",
    "Reject": "control",
    "Retry": "control",
    "Serializer": "serializers",
    "SetAside": "engine.setaside",
    "Undecodable": "plain.coding",
    "VerificationReport": "engine.verification",
    "Worker": "plain.worker",
    "WorkerEntry": "engine.roster",
    "WorkerStats": "seam",
    "task": "declaration",
}

__all__ = [
    "AsyncQueue",
    "BackoffPolicy",
    "BackupReport",
    "CompactionResult",
    "Diagnostics",
    "Finding",
    "Health",
    "IntegrityReport",
    "Job",
    "JobState",
    "JsonSerializer",
    "MsgpackSerializer",
    "Queue",
    "QueueStats",
    "Reject",
    "Retry",
    "Serializer",
    "SetAside",
    "Undecodable",
    "VerificationReport",
    "Worker",
    "WorkerEntry",
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
