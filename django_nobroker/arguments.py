"""The arguments and results of tasks as JSON text, strict in both directions.

What ``enqueue()`` returns, what the task is called with and what a result holds have
all made the same round trip, so no mode of running a task differs from another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import payload
from .exceptions import SerializationError
from .payload import LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCall:
    """What a Django job asks for: a task by its path, and its arguments."""

    path: str
    args: list[Any]
    kwargs: dict[str, Any]


def round_trip(
    path: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[bytes, TaskCall]:
    """Return the payload of a call, and the call as whoever reads it will find it.

    The payload is ``{"task": path, "args": [...], "kwargs": {...}}``.

    Raises:
        SerializationError: with the path of what cannot be written, such as
            ``args[0]`` or ``kwargs['when']``, or if it is longer than 8 MiB.
    """
    args_text, read_args = payload.encode(list(args), "args")
    kwargs_text, read_kwargs = payload.encode(dict(kwargs), "kwargs")
    written = b'{"task":%b,"args":%b,"kwargs":%b}' % (
        payload.dumps(path, "task"),
        args_text,
        kwargs_text,
    )
    if len(written) > LIMIT:
        raise SerializationError(
            f"Unsupported type or size: args and kwargs take {len(written)} bytes of "
            f"JSON, and {LIMIT} is the limit. Store the data and pass its key."
        )
    return written, TaskCall(path=path, args=read_args, kwargs=read_kwargs)


def load_call(written: bytes) -> TaskCall:
    """Return the call that a payload asks for.

    Raises:
        ValueError: if the payload is not that of a Django job.
    """
    match payload.loads(written):
        case {"task": str(path), "args": list(args), "kwargs": dict(kwargs)}:
            return TaskCall(path=path, args=args, kwargs=kwargs)
    raise ValueError("The payload names no task: the job was not enqueued by Django.")


def dump_result(value: object) -> bytes:
    """Return a task's result as JSON.

    Raises:
        SerializationError: with the path of what cannot be written, or its size.
    """
    return payload.dumps(value, "result")


def load_result(written: bytes | None) -> Any:
    """Return what :func:`dump_result` wrote; None for a job that kept no result."""
    return None if written is None else payload.loads(written)
