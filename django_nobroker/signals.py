"""The signals of a job's life that Django's Tasks framework has no name for.

Each is sent in the worker's thread, after the fact is on disk; its sender is the
backend's class and it carries ``task_result``. Django's own ``task_enqueued``,
``task_started`` and ``task_finished`` are sent by :func:`announce` as well: a
receiver that raises is logged and changes nothing.
"""

from __future__ import annotations

from typing import Any

from django.dispatch import Signal

task_retried = Signal()
"""An attempt failed and another will follow; ``error`` and ``delay`` in seconds."""

task_dead = Signal()
"""The job went to the dead letters; ``reason`` is one word or two."""

lease_lost = Signal()
"""The attempt ended after its lease was gone, so its outcome was thrown away."""


def announce(signal: Signal, backend: object, **facts: Any) -> None:
    """Send ``signal`` to every receiver, whatever the others do."""
    # Django logs what a receiver raises, with its traceback.
    signal.send_robust(sender=type(backend), **facts)


async def aannounce(signal: Signal, backend: object, **facts: Any) -> None:
    """See :func:`announce`."""
    await signal.asend_robust(sender=type(backend), **facts)
