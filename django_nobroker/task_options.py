"""Reads the options of a task, or says what they must be instead.

The options of a backend are in ``options.py``; these are of one task, and a wrong one
is a fault of the code that declares or enqueues it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any, Protocol

from . import limits
from . import option_values as read
from .compat import InvalidTask
from .retry import BackoffPolicy

Exceptions = tuple[type[BaseException], ...]


class HasOptions(Protocol):
    """A task, as far as its name and queue are concerned."""

    @property
    def queue_name(self) -> str:
        """The queue."""

    @property
    def job_id(self) -> str | None:
        """The id of the next job."""


def check_name(name: object, what: str) -> None:
    """Refuse an id or a queue's name that is not fit to be written.

    Raises:
        InvalidTask: if it is not 1 to 200 characters without control characters.
    """
    try:
        limits.name(name, what)
    except (TypeError, ValueError) as error:
        raise InvalidTask(str(error)) from error


def _priority(value: object) -> object:
    # Django compares before it looks at the type, and takes True for 1.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a whole number, not {value!r}.")  # noqa: TRY004
    return value


def _moment(value: object) -> datetime:
    if not isinstance(value, datetime):
        raise ValueError(  # noqa: TRY004 - it becomes an InvalidTask.
            f"must be a datetime or a timedelta, not {value!r}."
        )
    return value


def _backoff(value: object) -> dict[str, float]:
    if isinstance(value, BackoffPolicy):
        return asdict(value)
    read.backoff(BackoffPolicy())(value)
    return dict(value)  # type: ignore[call-overload, no-any-return]


def _exceptions(value: object) -> Exceptions:
    classes = (value,) if isinstance(value, type) else value
    if not isinstance(classes, Iterable):
        raise ValueError(f"must be exception classes, not {value!r}.")  # noqa: TRY004
    classes = tuple(classes)
    for found in classes:
        if not (isinstance(found, type) and issubclass(found, BaseException)):
            raise ValueError(f"must be exception classes, not {found!r}.")  # noqa: TRY004
    return classes


_READERS: dict[str, read.Reader[Any]] = {
    "priority": _priority,
    "run_after": read.optional(_moment),
    "max_attempts": read.optional(read.whole_number(at_least=1)),
    "backoff": read.optional(_backoff),
    "retry_on": read.optional(_exceptions),
    "no_retry_on": _exceptions,
    "timeout": read.optional(read.seconds(above=0)),
}


def checked(task: HasOptions) -> dict[str, Any]:
    """Return the options of ``task`` in the form that it works with.

    Raises:
        InvalidTask: for the first one that is wrong.
    """
    check_name(task.queue_name, "queue_name")
    if task.job_id is not None:
        check_name(task.job_id, "job_id")
    values = {}
    for name, reader in _READERS.items():
        try:
            values[name] = reader(getattr(task, name))
        except ValueError as error:
            raise InvalidTask(f"{name} {error}") from error
    return values
