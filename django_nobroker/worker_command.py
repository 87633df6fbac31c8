"""What ``runworker`` does once its options are parsed: one worker, until it stops."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from collections.abc import Iterable
from dataclasses import replace

from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError

from . import registry, seam
from .backends import LogBackend
from .chosen_backend import log_backend
from .exceptions import NobrokerError
from .execution import TaskExecution
from .options import nearest
from .stop_signals import StopSignals

logger = logging.getLogger("django_nobroker.worker")


def run_worker(alias: str, options: seam.WorkerOptions) -> seam.WorkerStats:
    """Work on the jobs of one backend until a signal or ``options`` end it.

    The lease is that of the backend's options, and ``worker_id`` is made if it is
    empty.

    Raises:
        CommandError: if the worker cannot start, or the store fails under it.
    """
    try:
        backend = log_backend(alias)
    except ImproperlyConfigured as error:
        raise CommandError(str(error)) from error
    _check_queues(backend, [*options.queues, *options.exclude])
    try:
        registry.discover()
    except Exception as error:
        # Its jobs would end as dead letters of unknown tasks, one by one.
        raise CommandError(f"The tasks cannot be imported: {error!r}") from error
    try:
        configured = backend.configuration.options
        stats = _work(
            backend,
            replace(
                options,
                lease=configured.visibility_timeout,
                worker_id=options.worker_id or _new_worker_id(),
            ),
        )
    except (NobrokerError, OSError, ImproperlyConfigured) as error:
        raise CommandError(f"{type(error).__name__}: {error}") from error
    return stats


def _work(backend: LogBackend, options: seam.WorkerOptions) -> seam.WorkerStats:
    execution = TaskExecution(backend)
    stop = threading.Event()
    with StopSignals(stop):
        logger.info(
            "Worker %s works on %s of %r in %d thread(s). Directory: %s",
            options.worker_id,
            _spoken(options),
            backend.alias,
            options.concurrency,
            backend.configuration.options.directory,
        )
        try:
            stats = backend.engine.run_worker(
                execution.execute,
                options,
                stop=stop,
                on_start=execution.started,
                on_settled=execution.settled,
            )
        finally:
            execution.close()
    logger.info(
        "Worker %s stopped: %d leased, %d succeeded, %d failed, %d dead, "
        "%d lost leases.",
        options.worker_id,
        stats.leased,
        stats.succeeded,
        stats.failed,
        stats.dead,
        stats.lost_leases,
    )
    return stats


def _check_queues(backend: LogBackend, names: Iterable[str]) -> None:
    for name in names:
        if backend.queues and name not in backend.queues:
            known = sorted(backend.queues)
            raise CommandError(
                f"TASKS[{backend.alias!r}]['QUEUES'] has no {name!r}."
                f"{nearest(name, known)} Known: {', '.join(known)}."
            )


def _spoken(options: seam.WorkerOptions) -> str:
    queues = ", ".join(options.queues) or "all queues"
    return (
        f"{queues} except {', '.join(options.exclude)}" if options.exclude else queues
    )


def _new_worker_id() -> str:
    # Random, since in two containers the host's name and the pid can be the same.
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
