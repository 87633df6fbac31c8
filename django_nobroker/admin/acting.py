"""A page whose jobs can be acted on: ask for a confirmation, do it, tell what came of it."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _

from django_nobroker.seam import Requeued

from . import audit
from .actions import ACTIONS, Action, Selection
from .listing import row
from .screen import Screen
from .stores import UNAVAILABLE, Store, fault
from .text import visible

REASONS_MAX = 5  # skipped jobs told one by one after an action


class ActingScreen(Screen):
    """The two steps of every action, each a POST; no other request changes a thing."""

    def offered(self, request: HttpRequest) -> list[Action]:
        """Return the actions that the user may do; the others get no button."""
        return [
            action
            for action in ACTIONS.values()
            if self.may(request, action.permission)
        ]

    def act(
        self,
        request: HttpRequest,
        store: Store | None,
        job_ids: list[str],
        *,
        back: str,
    ) -> HttpResponse:
        """Ask for a confirmation, or do what was confirmed, and go ``back``."""
        action = ACTIONS.get(request.POST.get("action", ""))
        if action is not None:
            self.require(request, action.permission)
        if action is None or store is None:
            messages.warning(request, _("No action selected."))
            return HttpResponseRedirect(back)
        if not job_ids:
            messages.warning(request, _("No jobs are selected. Nothing was changed."))
            return HttpResponseRedirect(back)
        try:
            selection = Selection.of(store.engine, action, job_ids)
            if request.POST.get("confirm") != "yes":
                return self.confirmation(request, selection, back=back)
            by = request.user.get_username()
            moved = selection.move(store.engine, by=by)
        except UNAVAILABLE as error:
            messages.error(
                request,
                _("Nothing was changed: %(fault)s") % {"fault": fault(error)},
            )
            return HttpResponseRedirect(back)
        audit.record(request, moved.requeued, action.flag, str(action.entry))
        tell(request, action, moved)
        return HttpResponseRedirect(back)

    def confirmation(
        self, request: HttpRequest, selection: Selection, *, back: str
    ) -> HttpResponse:
        """Show exactly what would be done, and a button that does it."""
        action = selection.action
        return self.page(
            request,
            "confirm.html",
            title=_("%(action)s dead letters") % {"action": action.label},
            below_list=True,
            action=action,
            question=action.question % {"count": len(selection.jobs)},
            rows=[row(job) for job in selection.jobs],
            skipped=[
                (visible(job_id), visible(reason))
                for job_id, reason in selection.skipped.items()
            ],
            checkbox_name=ACTION_CHECKBOX_NAME,
            back=back,
        )


def tell(request: HttpRequest, action: Action, moved: Requeued) -> None:
    """Say what was done and what was not, with the reasons of the first few."""
    done, not_done = len(moved.requeued), len(moved.skipped)
    if done:
        messages.success(request, action.done % {"count": done})
    if not not_done:
        return
    reasons = [
        _("“%(id)s”: %(reason)s") % {"id": visible(job_id, 80), "reason": visible(why)}
        for job_id, why in list(moved.skipped.items())[:REASONS_MAX]
    ]
    if not_done > REASONS_MAX:
        reasons.append(_("and %(count)d more") % {"count": not_done - REASONS_MAX})
    text = f"{action.not_done % {'count': not_done}} {'; '.join(reasons)}"
    messages.warning(request, text)
