"""Jobs as the command line finds and shows them, of one queue or of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django_nobroker.engine import claim, history, listing, states
from django_nobroker.engine.errors import JobNotFoundError
from django_nobroker.engine.states import Row
from django_nobroker.engine.store import Store
from django_nobroker.engine.tables import Tables
from django_nobroker.plain.coding import Undecodable
from django_nobroker.plain.job import Job
from django_nobroker.seam import JobView
from django_nobroker.views import STATES, job_view

from . import payloads
from .refusal import Refusal

#: What ``--state`` takes. A delayed job is a ready one that is not due yet.
DELAYED = "delayed"
STATE_NAMES = (*(state.value for state in STATES), DELAYED)
#: Jobs looked up at once.
_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One job with its payload's JSON text; None if that is damaged."""

    view: JobView
    text: bytes | None

    @property
    def last_error(self) -> str | None:
        """Type and message of the newest failure."""
        error = self.view.error
        if error is None:
            return None
        if error.type == claim.LOST.type or not error.type:
            return error.message
        return f"{error.type}: {error.message}"

    def to_dict(self) -> dict[str, object]:
        """Return the fields of ``Job`` under their names."""
        view = self.view
        return {
            "id": view.id,
            "payload": payloads.value(self.text),
            "queue": view.queue,
            "priority": view.priority,
            "state": view.state.value,
            "attempts": view.attempts,
            "max_attempts": view.max_attempts,
            "available_at": view.available_at,
            "enqueued_at": view.enqueued_at,
            "last_error": self.last_error,
        }


def job_values(job: Job[Any]) -> dict[str, object]:
    """Return the fields of a job that a queue gave, as :meth:`Shown.to_dict` does."""
    return {
        "id": job.id,
        "payload": None if isinstance(job.payload, Undecodable) else job.payload,
        "queue": job.queue,
        "priority": job.priority,
        "state": job.state.value,
        "attempts": job.attempts,
        "max_attempts": job.max_attempts,
        "available_at": job.available_at,
        "enqueued_at": job.enqueued_at,
        "last_error": job.last_error,
    }


def queue_names(store: Store) -> list[str]:
    """Return the names of all queues that ever had a job."""
    return sorted(store.look(lambda tables: list(tables.names.queues)))


def find(store: Store, job_id: str, queue: str | None) -> tuple[int, Row, str]:
    """Return position, row and queue of a job by its id.

    Raises ``JobNotFoundError``, and :class:`Refusal` if several queues have such a job
    and none was named.
    """

    def look(tables: Tables) -> list[tuple[int, Row, str]]:
        found = []
        for number, name in enumerate(tables.names.queues):
            one = tables.find(job_id, number) if queue in (None, name) else None
            if one is not None:
                found.append((*one, name))
        return found

    found = store.look(look)
    if not found:
        where = "the store" if queue is None else f"the queue {queue}"
        raise JobNotFoundError(f"No job {job_id} is in {where}.")
    if len(found) > 1:
        names = ", ".join(name for *_, name in found)
        raise Refusal(
            f"Several queues have a job {job_id} ({names}): name one with -q."
        )
    return found[0]


def shown(store: Store, position: int, row: Row) -> Shown:
    """Return one job of the index with what its records add."""
    return store.look(lambda tables: _shown(store, tables, position, row))


def _shown(store: Store, tables: Tables, position: int, row: Row) -> Shown:
    return Shown(
        view=job_view(store, tables, position, row), text=history.payload(store, row)
    )


def walk(
    store: Store,
    *,
    state: str | None = None,
    queue: str | None = None,
    after: int | None = None,
) -> Iterator[Shown]:
    """Yield jobs in the order of their enqueues; ``after`` is the position seen last."""
    wanted = _state(state)

    def look(tables: Tables) -> list[Shown]:
        number = None if queue is None else tables.queue_number(queue)
        if queue is not None and number is None:
            return []
        rows = (
            (position, row)
            for position, row in listing.walk(
                tables, state=wanted, queue=number, after=after
            )
            if state != DELAYED or row.timer != states.DUE
        )
        return [_shown(store, tables, *one) for one in islice(rows, _PAGE)]

    while True:
        page = store.look(look)
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].view.position


def _state(name: str | None) -> int | None:
    if name is None:
        return None
    return states.READY if name == DELAYED else STATES.index(name)
