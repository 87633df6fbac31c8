"""A page of the admin that reads the log instead of a table.

It has the permissions of its model and the addresses that a model's admin would
have, so that the index, the sidebar and the log entries find it. What is on the page
is up to the classes that are made from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import django
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.functional import Promise
from django.utils.text import capfirst

from .addresses import page_url, url_name

if TYPE_CHECKING:
    TableAdmin = admin.ModelAdmin[Model]
else:
    TableAdmin = admin.ModelAdmin


class Screen(TableAdmin):
    """The parts of ``ModelAdmin`` that need no table."""

    actions = None

    def get_urls(self) -> list[URLPattern]:
        """Return the address of the list; the inherited ones would need rows."""
        return [
            path(
                "",
                self.admin_site.admin_view(self.changelist_view),
                name=url_name(self.model, "changelist"),
            )
        ]

    def link(
        self, page: str, *, job_id: str | None = None, **query: str | int | None
    ) -> str:
        """Return the address of one of this model's pages on this admin site."""
        return page_url(self.admin_site, self.model, page, job_id=job_id, **query)

    # --- permissions ---------------------------------------------------------

    def may(self, request: HttpRequest, codename: str) -> bool:
        """Tell whether the user has one of this app's permissions."""
        return request.user.has_perm(f"{self.opts.app_label}.{codename}")

    # The arguments that are not used are Django's.

    def has_view_permission(
        self,
        request: HttpRequest,
        obj: Model | None = None,  # noqa: ARG002
    ) -> bool:
        """Tell whether the user may see the page, its index entry included."""
        return self.may(request, f"view_{self.opts.model_name}")

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002
        """Return False: jobs are enqueued by code."""
        return False

    def has_change_permission(
        self,
        request: HttpRequest,  # noqa: ARG002
        obj: Model | None = None,  # noqa: ARG002
    ) -> bool:
        """Return False: what is done to a job has permissions of its own."""
        return False

    def has_delete_permission(
        self,
        request: HttpRequest,  # noqa: ARG002
        obj: Model | None = None,  # noqa: ARG002
    ) -> bool:
        """Return False: the log deletes by retention only."""
        return False

    def require_view(self, request: HttpRequest) -> None:
        """Refuse with 403 who may not see the page."""
        if not self.has_view_permission(request):
            raise PermissionDenied

    def require(self, request: HttpRequest, codename: str) -> None:
        """Refuse with 403 who lacks one of this app's permissions."""
        if not self.may(request, codename):
            raise PermissionDenied

    # --- rendering -----------------------------------------------------------

    def page(
        self,
        request: HttpRequest,
        template: str,
        *,
        title: str | Promise = "",
        **context: Any,
    ) -> HttpResponse:
        """Render ``template``, of this model or else of the app, within the admin."""
        # {% url 'admin:...' %} in templates then stays on a custom site.
        request.current_app = self.admin_site.name
        folder = f"admin/{self.opts.app_label}"
        return TemplateResponse(
            request,
            [f"{folder}/{self.opts.model_name}/{template}", f"{folder}/{template}"],
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": title or capfirst(self.opts.verbose_name_plural),
                "list_url": self.link("changelist"),
                # Django 6.1 made an ordered list of its breadcrumbs.
                "breadcrumbs_are_a_list": django.VERSION >= (6, 1),
                **context,
            },
        )
