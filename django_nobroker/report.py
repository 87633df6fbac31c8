"""Tells of each attempt: signals to receivers, lines to the log.

It is called after the fact is on disk, so nothing that a receiver does can change
it. What a receiver raises is logged, all but ``SystemExit`` and its like.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from . import failures, seam
from .compat import AnyResult, task_finished, task_started
from .results import task_error
from .signals import announce, lease_lost, task_dead, task_retried

logger = logging.getLogger("django_nobroker.worker")


def start(backend: object, attempt: seam.Attempt, result: AnyResult | None) -> None:
    """Tell that an attempt begins; ``result`` is None if its task is unknown."""
    logger.debug(
        "Job %s: %s starts, attempt %d of %d.",
        attempt.id,
        attempt.kind,
        attempt.number,
        attempt.max_attempts,
    )
    if result is not None:
        announce(task_started, backend, task_result=result)


def end(
    backend: object,
    settled: seam.Settled,
    result: AnyResult | None,
    raised: BaseException | None,
) -> None:
    """Tell what became of an attempt; ``raised`` is what its task raised."""
    _log(settled)
    if result is not None:
        _during(raised, lambda: _announce(backend, settled, result))


def _announce(backend: object, settled: seam.Settled, result: AnyResult) -> None:
    outcome = settled.outcome
    if settled.state is None:
        announce(lease_lost, backend, task_result=result)
        return
    if result.is_finished:
        announce(task_finished, backend, task_result=result)
    if isinstance(outcome, seam.Done):
        return
    if settled.state is seam.State.DEAD:
        reason = outcome.reason if isinstance(outcome, seam.Dead) else "attempts"
        announce(task_dead, backend, task_result=result, reason=reason)
    else:
        announce(
            task_retried,
            backend,
            task_result=result,
            error=task_error(outcome.error),
            delay=settled.delay,
        )


def _during(raised: BaseException | None, act: Callable[[], None]) -> None:
    """Call ``act`` while ``raised`` is being handled.

    Django's own receiver, and those of error trackers, look at ``sys.exc_info()``.
    An exception with a text of megabytes is kept from them.
    """
    if raised is None or failures.is_huge(raised):
        act()
        return
    trace = raised.__traceback__
    try:
        raise raised  # noqa: TRY301 - it only makes exc_info() what it was.
    except BaseException:  # noqa: BLE001 - it is the task's, and was recorded.
        act()
    finally:
        # Without this frame, which refers to the exception in turn.
        raised.__traceback__ = trace


def _log(settled: seam.Settled) -> None:
    attempt, outcome = settled.attempt, settled.outcome
    which = attempt.id, attempt.kind
    if settled.state is None:
        text = "Job %s: %s lost its lease; the outcome of this attempt is dropped."
        logger.warning(text, *which)
    elif isinstance(outcome, seam.Done):
        logger.info("Job %s: %s succeeded.", *which)
    elif settled.state is seam.State.DEAD:
        reason = outcome.reason if isinstance(outcome, seam.Dead) else "attempts"
        text = "Job %s: %s is dead (%s) after attempt %d: %s"
        logger.error(text, *which, reason, attempt.number, _summary(outcome.error))
    else:
        logger.warning(
            "Job %s: %s failed, attempt %d of %d, again in %.1f s: %s",
            *which,
            attempt.number,
            attempt.max_attempts,
            settled.delay or 0.0,
            _summary(outcome.error),
        )


def _summary(error: seam.Error) -> str:
    line = error.message.strip().partition("\n")[0][:200]
    return f"{error.type}: {line}" if line else error.type
