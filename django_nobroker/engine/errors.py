"""The exception tree of the engine, drawn once and documented for operators.

::

    NobrokerError
    ├── NotLeasedError
    ├── JobNotFoundError
    ├── LockTimeoutError
    ├── CorruptLogError
    ├── CompactionError
    ├── QueueClosedError
    ├── QueueEmpty
    ├── QueueFull
    ├── DuplicateJobError
    ├── SerializationError (also a TypeError)
    └── StorageError (also an OSError)
        ├── StoreFailedError
        └── DirectoryExistsError (also a FileExistsError)
"""

from __future__ import annotations


class NobrokerError(Exception):
    """Base of everything that this package raises on purpose."""


class NotLeasedError(NobrokerError):
    """The lease is not held any more, or never was.

    The job was given to another worker, or is finished. Drop the result of this
    attempt: whoever holds the lease now decides.
    """


class JobNotFoundError(NobrokerError):
    """No job of that id is in the store.

    It was never enqueued here, or it finished and its retention has passed.
    """


class LockTimeoutError(NobrokerError):
    """The store's lock could not be taken within ``lock_timeout`` seconds.

    Another process holds it: look for a stopped (SIGSTOP, debugger) process.
    """


class CorruptLogError(NobrokerError):
    """The directory holds no store that this version can open.

    The log is foreign, of a newer format, or a whole segment is missing. Nothing
    was changed: restore the missing file, or upgrade.
    """


class CompactionError(NobrokerError):
    """Compaction could not finish; the log is as it was, and stays in use."""


class QueueClosedError(NobrokerError):
    """The queue or its store was closed; open it again."""


class QueueEmpty(NobrokerError):
    """Nothing could be leased within the time that the caller gave."""


class QueueFull(NobrokerError):
    """The queue holds ``max_pending`` jobs; nothing was enqueued.

    Try later, or run more workers.
    """


class DuplicateJobError(NobrokerError):
    """A ``job_id`` was given again with another payload, and ``on_conflict="error"``.

    ``job_id`` is the id of the job that exists. Nothing was enqueued, nor anything
    else of the batch. Two different things have been given one name: look at the job,
    then choose another id, or ``purge`` the old one.
    """

    def __init__(self, message: str, job_id: str = "") -> None:
        super().__init__(message)
        self.job_id = job_id


class SerializationError(NobrokerError, TypeError):
    """A payload cannot make the round trip to bytes and back; nothing was written.

    The text names the path of the value, such as ``kwargs['when']``.
    """


class StorageError(NobrokerError, OSError):
    """The disk refused: full, read-only, an I/O error, or the directory is gone.

    Nothing was acknowledged. Free space or restore the directory, then try again.
    """


class StoreFailedError(StorageError):
    """A sync of the log failed, so the store acknowledges nothing more.

    After a failed sync the kernel may have dropped what it had not written, and
    a second sync would report success. Check the disk, then restart the machine
    or remount the file system; the next opening reads what really is on disk.
    """


class DirectoryExistsError(StorageError, FileExistsError):
    """There is something already where a copy should go; it was left as it is.

    Choose another name: a backup never overwrites anything.
    """


def storage_error(error: OSError, doing: str) -> StorageError:
    """Return what the operator should read when ``doing`` failed in the file system."""
    if isinstance(error, StorageError):
        return error
    reason = error.strerror or str(error)
    return StorageError(error.errno or 0, f"{doing}: {reason}", error.filename)
