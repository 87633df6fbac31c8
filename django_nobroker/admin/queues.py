"""The page of queues: how many jobs are in which state, and what is wrong."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from django_nobroker.models import DeadJob, Queue
from django_nobroker.seam import Problem, QueueCounts

from .addresses import page_url
from .moments import moment, span
from .screen import Screen
from .stores import UNAVAILABLE, Store, all_stores, fault
from .text import is_sendable, visible

# Pieces of a sentence; True marks what stood between backticks: a command.
ShownProblem = tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """One queue's figures as the table shows them."""

    name: str
    counts: QueueCounts
    waiting: str  # how long the oldest due job has been waiting
    waiting_since: Any  # datetime or None
    dead_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One store on the page: its queues and problems, or why it cannot be read."""

    alias: str
    rows: tuple[QueueRow, ...] = ()
    total: QueueCounts = field(default_factory=lambda: QueueCounts(queue=""))
    problems: tuple[ShownProblem, ...] = ()
    fault: str = ""


def _total(counts: list[QueueCounts]) -> QueueCounts:
    return QueueCounts(
        queue="",
        ready=sum(row.ready for row in counts),
        delayed=sum(row.delayed for row in counts),
        leased=sum(row.leased for row in counts),
        done=sum(row.done for row in counts),
        dead=sum(row.dead for row in counts),
    )


def _shown_problem(problem: Problem) -> ShownProblem:
    pieces = visible(f"{problem.text} {problem.hint}", 2000).split("`")
    return tuple((piece, number % 2 == 1) for number, piece in enumerate(pieces))


@admin.register(Queue)
class QueueAdmin(Screen):
    """Figures of every queue of every store; nothing is changed here."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show all stores, one below the other."""
        self.require_view(request)
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        sections = [self.section(request, store) for store in all_stores()]
        return self.page(
            request, "change_list.html", sections=sections, **(extra_context or {})
        )

    def section(self, request: HttpRequest, store: Store) -> Section:
        """Read one store; one that cannot be read does not hide the others."""
        alias = visible(store.alias)
        try:
            counts = store.engine.counts()
            problems = tuple(map(_shown_problem, store.engine.problems()))
        except UNAVAILABLE as error:
            return Section(alias=alias, fault=fault(error))
        rows = tuple(self.row(request, store, row) for row in counts)
        return Section(alias=alias, rows=rows, total=_total(counts), problems=problems)

    def row(self, request: HttpRequest, store: Store, counts: QueueCounts) -> QueueRow:
        """Return the figures of one queue, its dead letters linked for who may look."""
        since = counts.oldest_ready_at
        dead_url = ""
        if counts.dead and is_sendable(counts.queue):
            dead_url = self.dead_letters(request, store, queue=counts.queue)
        return QueueRow(
            name=visible(counts.queue),
            counts=counts,
            waiting=span(None if since is None else time.time() - since),
            waiting_since=moment(since),
            dead_url=dead_url,
        )

    def dead_letters(self, request: HttpRequest, store: Store, *, queue: str) -> str:
        """Return the address of a queue's dead letters, "" for who may not look."""
        if not self.may(request, "view_deadjob"):
            return ""
        return page_url(
            self.admin_site, DeadJob, "changelist", backend=store.alias, queue=queue
        )
