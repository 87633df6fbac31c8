"""Which store a command is about, and how its queues are opened."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django_nobroker.engine import segment
from django_nobroker.engine.retention import Terms
from django_nobroker.options import Options
from django_nobroker.plain.queue import Queue
from django_nobroker.problems import Commands, shell_commands
from django_nobroker.serializers import Serializer

from .refusal import Refusal

DEFAULT_QUEUE = "default"

#: Keyword arguments of :class:`Queue`, and how long ended jobs stay.
QueueArguments = Mapping[str, Any]


def _no_arguments(_queue: str) -> QueueArguments:
    return {}


def _no_remark(_payload: object) -> str:
    return ""


def _plain_terms(_queue: str) -> Terms:
    return Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A store's directory; looking never makes or repairs anything there."""

    directory: str
    commands: Commands
    #: By the queue's name: how it is opened, and how long its ended jobs stay.
    arguments: Callable[[str], QueueArguments] = _no_arguments
    terms: Callable[[str], Terms] = _plain_terms
    #: A remark about a payload that is to be enqueued; raises :class:`Refusal`.
    remark: Callable[[object], str] = _no_remark

    def is_there(self) -> bool:
        """Tell whether the directory holds a log."""
        try:
            return segment.is_there(self.directory)
        except OSError as error:
            # A file is no store, whoever asks.
            if error.errno == errno.ENOTDIR:
                return False
            raise

    def require(self) -> None:
        """Raise :class:`Refusal` unless the directory holds a log."""
        if not self.is_there():
            what = "no store in" if Path(self.directory).is_dir() else "no directory"
            raise Refusal(f"There is {what} {self.directory}; nothing was made.")

    def look(self, queue: str | None = None) -> Queue[Any]:
        """Open a queue of a store that is there, for looking only."""
        self.require()
        name = DEFAULT_QUEUE if queue is None else queue
        return Queue(self.directory, name, **self.arguments(name), read_only=True)

    def open(self, queue: str | None = None) -> Queue[Any]:
        """Open a queue of a store that is there, for writing too."""
        self.require()
        return self.make(queue)

    def make(
        self, queue: str | None = None, serializer: Serializer[Any] | None = None
    ) -> Queue[Any]:
        """Open a queue for writing; the store is made if it is missing."""
        name = DEFAULT_QUEUE if queue is None else queue
        return Queue(
            self.directory, name, **self.arguments(name), serializer=serializer
        )


def plain_place(directory: str) -> Place:
    """Return the store of the console script; options are those of ``Queue``."""
    return Place(directory=directory, commands=shell_commands(directory))


def configured_place(
    options: Options, commands: Commands, remark: Callable[[object], str]
) -> Place:
    """Return the store of a backend, whose options hold for its queues."""

    def arguments(queue: str) -> QueueArguments:
        own = options.for_queue(queue)
        return {
            "fsync": options.fsync,
            "visibility_timeout": own.visibility_timeout,
            "max_attempts": own.max_attempts,
            "backoff": own.backoff,
            "max_pending": own.max_pending,
            "result_ttl": own.result_ttl,
            "job_id_ttl": options.job_id_ttl,
            "file_mode": options.file_mode,
            "group": options.group,
            "index_directory": options.index_directory,
        }

    def terms(queue: str) -> Terms:
        own = options.for_queue(queue)
        return Terms(results=own.result_ttl, dead=own.dead_ttl, ids=options.job_id_ttl)

    return Place(
        directory=str(options.directory),
        commands=commands,
        arguments=arguments,
        terms=terms,
        remark=remark,
    )
