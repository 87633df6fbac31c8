"""The pages of dead letters: browse, look at one, requeue and discard."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from django_nobroker.models import DeadJob
from django_nobroker.seam import JobDetail, JobView, State

from .acting import ActingScreen
from .actions import STATES
from .addresses import candidates, url_name
from .arguments import Redaction, read_arguments
from .letter import Letter
from .listing import Filter, Listing, Row, row
from .stores import (
    UNAVAILABLE,
    Store,
    all_stores,
    chosen_store,
    fault,
    find_job,
)
from .text import is_sendable, visible


@admin.register(DeadJob)
class DeadJobAdmin(ActingScreen):
    """Dead letters, one store at a time; ``list_per_page`` is the page's length."""

    def get_urls(self) -> list[URLPattern]:
        """Return the addresses of the list and of one job.

        The job's is named as a change form's, so that log entries link to it.
        """
        return [
            *super().get_urls(),
            path(
                "<path:object_id>/",
                self.admin_site.admin_view(self.detail_view),
                name=url_name(self.model, "change"),
            ),
        ]

    # --- the list ------------------------------------------------------------

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show a page of dead letters; a POST acts on the selected ones."""
        self.require_view(request)
        stores = all_stores()
        store = chosen_store(stores, request.GET.get("backend"))
        if request.method == "POST":
            selected = request.POST.getlist(ACTION_CHECKBOX_NAME)
            wanted = Filter.of(request.GET)
            back = self.same_list(request, wanted, wanted.after)
            return self.act(request, store, selected, back=back)
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        context: dict[str, Any] = {
            "store": store,
            "stores": self.tabs(stores, store),
            **(extra_context or {}),
        }
        if store is not None:
            context |= self.listing(request, store)
        return self.page(request, "change_list.html", **context)

    def tabs(self, stores: list[Store], chosen: Store | None) -> list[dict[str, Any]]:
        """Return the stores to switch between; none if there is nothing to switch."""
        if len(stores) < 2:
            return []
        return [
            {
                "alias": store.alias,
                "url": self.link("changelist", backend=store.alias),
                "chosen": store == chosen,
            }
            for store in stores
        ]

    def listing(self, request: HttpRequest, store: Store) -> dict[str, Any]:
        """Return the context of the list, or the store's fault."""
        wanted = Filter.of(request.GET)
        if wanted.bad_key:
            messages.warning(
                request,
                _("“%(key)s” is no page of this list; these are the newest.")
                % {"key": visible(wanted.bad_key, 50)},
            )
        try:
            listing = Listing.read(store.engine, wanted, self.list_per_page)
        except UNAVAILABLE as error:
            return {"fault": fault(error)}
        return {
            "filter": wanted,
            "queues": [(name, visible(name)) for name in listing.queues],
            "tasks": [visible(name) for name in listing.tasks],
            "total": listing.total,
            "rows": [self.row(request, job) for job in listing.jobs],
            "actions": self.offered(request),
            "clear_url": self.link("changelist", backend=self.named(request)),
            "newest_url": self.same_list(request, wanted, None),
            "older_url": self.same_list(request, wanted, listing.next),
            "has_older": listing.next is not None,
        }

    def named(self, request: HttpRequest) -> str | None:
        """Return the backend that the address names, to be kept in further ones."""
        return request.GET.get("backend")

    def same_list(self, request: HttpRequest, wanted: Filter, after: int | None) -> str:
        """Return the address of this list from a key on, from the newest for None."""
        return self.link(
            "changelist",
            backend=self.named(request),
            queue=wanted.queue,
            task=wanted.task,
            after=after,
        )

    def row(self, request: HttpRequest, job: JobView) -> Row:
        """Return one row, linked to its page if its id can be part of an address."""
        url = ""
        if is_sendable(job.id):
            url = self.link("change", job_id=job.id, backend=self.named(request))
        return row(job, url)

    # --- one job -------------------------------------------------------------

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show one dead letter; a POST acts on it."""
        self.require_view(request)
        stores = all_stores()
        if "backend" in request.GET:
            chosen = chosen_store(stores, request.GET["backend"])
            stores = [chosen] if chosen else []
        try:
            store, detail = find_job(stores, candidates(object_id))
            redaction = store.redaction
        except UNAVAILABLE as error:
            title = _("Dead letter")
            return self.page(request, "detail.html", title=title, fault=fault(error))
        list_url = self.link("changelist", backend=self.named(request))
        if request.method == "POST":
            return self.act(request, store, [detail.job.id], back=list_url)
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        if detail.job.state is not State.DEAD:
            # Other permissions may guard jobs that are not dead: tell no more than
            # what happened to this one.
            messages.info(
                request,
                _("Job “%(id)s” is not a dead letter: it is %(state)s.")
                % {"id": visible(detail.job.id), "state": STATES[detail.job.state]},
            )
            return HttpResponseRedirect(list_url)
        return self.letter(request, detail, redaction)

    def letter(
        self, request: HttpRequest, detail: JobDetail, redaction: Redaction
    ) -> HttpResponse:
        """Render the page of a dead job, arguments only for who may read them."""
        letter = Letter.of(detail)
        arguments = None
        if self.may(request, "view_payload"):
            kind = detail.job.kind
            arguments = read_arguments(detail.payload, kind, redaction)
        return self.page(
            request,
            "detail.html",
            title=_("Dead letter %(id)s") % {"id": letter.shown_id},
            below_list=True,
            letter=letter,
            arguments=arguments,
            actions=self.offered(request),
        )
