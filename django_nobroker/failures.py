"""From what a task raised to the outcome of its attempt; never fails, never raises.

Texts only: an exception object can hold anything, and its text can be missing, huge
or impossible to encode. What is kept is capped and can be written as JSON.
"""

from __future__ import annotations

import traceback
from collections.abc import Container
from types import CodeType, TracebackType
from typing import Any

from . import seam
from .compat import Task
from .control import Reject, Retry
from .declaration import NobrokerTask
from .exception_text import MESSAGE_LIMIT, TRACEBACK_LIMIT, encodable
from .options import QueueOptions
from .results import path_of

REJECTED = "rejected"
NOT_RETRIED = "not retried"
UNKNOWN_TASK = "unknown task"
WRONG_PAYLOAD = "wrong payload"
WRONG_ARGUMENTS = "wrong arguments"
WRONG_RESULT = "wrong result"


def describe(raised: BaseException, *, callers: Container[CodeType] = ()) -> seam.Error:
    """Return the texts of ``raised``, its traceback without the worker's frames.

    Those are the same for every task: all down to the last one of ``callers``.
    """
    kind = type(raised)
    try:
        message = str(raised)
    except BaseException:  # noqa: BLE001 - whatever a foreign __str__ raises.
        message = f"<{kind.__qualname__}: str() failed>"
    try:
        lines = traceback.format_exception(
            kind, raised, _trimmed(raised.__traceback__, callers)
        )
        text = "".join(lines)
    except BaseException:  # noqa: BLE001 - whatever foreign code raises.
        text = f"<{kind.__qualname__}: the traceback could not be formatted>\n"
    return seam.Error(
        type=path_of(kind),
        message=_capped(message, MESSAGE_LIMIT),
        traceback=_capped(text, TRACEBACK_LIMIT),
    )


def outcome_of(
    raised: BaseException,
    task: Task[..., Any],
    attempt: seam.Attempt,
    options: QueueOptions,
    error: seam.Error,
) -> seam.Retry | seam.Dead:
    """Decide what follows on a failed attempt: another one, or the dead letters.

    The task's ``no_retry_on`` comes before its ``retry_on``. The engine makes the
    job dead when its attempts are used up, whatever is decided here.
    """
    if isinstance(raised, Reject):
        return seam.Dead(error=error, reason=REJECTED)
    own = task if isinstance(task, NobrokerTask) else None
    if isinstance(raised, Retry):
        delay = raised.after
    elif own and not _is_retried(raised, own):
        return seam.Dead(error=error, reason=NOT_RETRIED)
    else:
        delay = None
    if delay is None and own and (backoff := own.backoff_over(options.backoff)):
        delay = backoff.delay(attempt.number)
    return seam.Retry(error=error, delay=delay)


def _is_retried(raised: BaseException, task: NobrokerTask[..., Any]) -> bool:
    if isinstance(raised, task.no_retry_on):
        return False
    return task.retry_on is None or isinstance(raised, task.retry_on)


def _trimmed(
    trace: TracebackType | None, callers: Container[CodeType]
) -> TracebackType | None:
    kept = trace
    while trace is not None:
        if trace.tb_frame.f_code in callers:
            kept = trace.tb_next
        trace = trace.tb_next
    return kept


def _capped(text: str, limit: int) -> str:
    if len(text) > limit:
        # The end of a traceback says what happened, its beginning where.
        head = limit // 4
        left_out = len(text) - limit
        text = (
            f"{text[:head]}\n... {left_out} characters left out ...\n"
            f"{text[len(text) - (limit - head) :]}"
        )
    # File names and foreign messages may hold halves of surrogate pairs.
    return encodable(text)


def is_huge(raised: BaseException) -> bool:
    """Say whether the text of ``raised`` is longer than what is kept of it."""
    try:
        return len(str(raised)) > MESSAGE_LIMIT
    except BaseException:  # noqa: BLE001 - whatever a foreign __str__ raises.
        return False
