"""The stores that the pages look into: one for each task backend with an engine.

What a page may ask is the engine's seam and nothing else. A store that cannot be
opened is one more thing to show, so every access goes through the errors named
here.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Protocol, cast

from django.core.exceptions import ImproperlyConfigured
from django.http import Http404
from django.utils.translation import gettext as _

from django_nobroker.compat import task_backends
from django_nobroker.conf import Configuration
from django_nobroker.exceptions import JobNotFoundError, NobrokerError
from django_nobroker.seam import Engine, JobDetail

from .arguments import Redaction
from .text import visible

# What opening or reading a store raises when it is the store's fault.
UNAVAILABLE = (NobrokerError, OSError, ImproperlyConfigured)


class OffersEngine(Protocol):
    """A task backend that these pages can look into."""

    @property
    def engine(self) -> Engine:
        """The engine, opened if need be."""


@dataclass(frozen=True, slots=True)
class Store:
    """One task backend and the engine behind it."""

    alias: str

    @property
    def engine(self) -> Engine:
        """Return the engine, opened if need be; raises one of ``UNAVAILABLE``."""
        backend = cast(OffersEngine, task_backends[self.alias])
        return backend.engine

    @property
    def redaction(self) -> Redaction:
        """Return what the option ``ADMIN_REDACT`` hides."""
        params = task_backends.settings[self.alias]
        return Redaction(Configuration(self.alias, params).options.admin_redact)


def _offers_engine(alias: str) -> bool:
    try:
        backend = task_backends[alias]
    except ImproperlyConfigured:
        # Nobody can tell what it would have been; its page says what is wrong.
        return True
    # getattr_static, because asking the attribute would open the store.
    return inspect.getattr_static(backend, "engine", None) is not None


def all_stores() -> list[Store]:
    """Return the stores in the order of the setting ``TASKS``."""
    return [Store(alias) for alias in task_backends if _offers_engine(alias)]


def chosen_store(stores: list[Store], alias: str | None) -> Store | None:
    """Return the store that the address names, else the first; None if none is there.

    Raises ``Http404`` for a name that is not among them.
    """
    if alias is None:
        return stores[0] if stores else None
    for store in stores:
        if store.alias == alias:
            return store
    raise Http404(
        _("No task backend “%(alias)s” keeps its jobs in a log.")
        % {"alias": visible(alias)}
    )


def fault(error: Exception) -> str:
    """Return an error of ``UNAVAILABLE`` as text for a page."""
    return visible(str(error) or type(error).__name__, 1000)


def find_job(stores: list[Store], job_ids: list[str]) -> tuple[Store, JobDetail]:
    """Return the first job of these ids in any of the stores.

    Raises ``Http404`` if there is none, and one of ``UNAVAILABLE`` if a store that
    might have it cannot be read.
    """
    for store in stores:
        for job_id in job_ids:
            try:
                return store, store.engine.job(job_id)
            except JobNotFoundError:
                continue
    raise Http404(_("There is no job “%(id)s”.") % {"id": visible(job_ids[0])})
