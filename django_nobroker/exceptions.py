"""The public errors; ``engine/errors.py`` draws the tree and says what to do."""

from __future__ import annotations

from .engine.errors import (
    CompactionError,
    CorruptLogError,
    DirectoryExistsError,
    DuplicateJobError,
    JobNotFoundError,
    LockTimeoutError,
    NobrokerError,
    NotLeasedError,
    QueueClosedError,
    QueueEmpty,
    QueueFull,
    SerializationError,
    StorageError,
    StoreFailedError,
)

__all__ = [
    "CompactionError",
    "CorruptLogError",
    "DirectoryExistsError",
    "DuplicateJobError",
    "JobNotFoundError",
    "LockTimeoutError",
    "NobrokerError",
    "NotLeasedError",
    "QueueClosedError",
    "QueueEmpty",
    "QueueFull",
    "SerializationError",
    "StorageError",
    "StoreFailedError",
]
