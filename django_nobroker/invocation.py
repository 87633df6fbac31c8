"""Calls the function of a task, be it a coroutine function or not.

It knows nothing of jobs: whatever the function raises is the caller's to catch.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from asgiref.sync import async_to_sync

from .compat import Task
from .control import TaskTimeout
from .declaration import NobrokerTask

logger = logging.getLogger("django_nobroker.worker")


def check_arguments(
    task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Refuse arguments that the function does not take.

    Raises:
        TypeError: as the call itself would, but told apart from one of its own.
    """
    # A decorator may add arguments to those of the function that it wraps, so it is
    # the outermost signature that counts.
    signature = inspect.signature(task.func, follow_wrapped=False)
    signature.bind(*args, **kwargs)


def call(
    task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> object:
    """Return what the task's function returns; a coroutine runs on an event loop.

    Raises:
        TaskTimeout: if a coroutine ran into the task's ``timeout`` and was cancelled.
            No thread can be stopped: a function that takes longer is reported.
        BaseException: whatever the function raises.
    """
    limit = task.timeout if isinstance(task, NobrokerTask) else None
    if inspect.iscoroutinefunction(task.func):
        return async_to_sync(_await)(task, args, kwargs, limit)
    began = time.monotonic()
    try:
        return _apply(task, args, kwargs)
    finally:
        took = time.monotonic() - began
        if limit is not None and took > limit:
            logger.warning(
                "%s took %.1f s, more than its timeout of %g s. Only async tasks "
                "can be stopped in a thread.",
                task.module_path,
                took,
                limit,
            )


def _apply(
    task: Task[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> object:
    return task.func(*args, **kwargs)


async def _await(
    task: Task[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    limit: float | None,
) -> object:
    scope = asyncio.timeout(limit)
    cleanup: Exception | None = None
    try:
        async with scope:
            result = await task.func(*args, **kwargs)
    except Exception as error:
        # The task's own TimeoutError looks the same as that of the scope.
        if not scope.expired():
            raise
        if not isinstance(error.__cause__, asyncio.CancelledError):
            cleanup = error
    if scope.expired():
        # Whatever it returned or raised when it was told to end, it was too late.
        text = f"{task.module_path} ran longer than its timeout of {limit:g} s."
        raise TaskTimeout(text) from cleanup
    return result


CALLERS = frozenset({_apply.__code__, _await.__code__})
"""The frames right above a task's own, for tracebacks that begin with the task."""
