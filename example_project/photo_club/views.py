"""The home page, and the answer to "how are these jobs doing?"."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from gallery.models import Photo
from members.views import WELCOME_JOB
from membership.models import Payment
from photo_club.jobs import job_status

LATEST = 6
JOBS_AT_ONCE = 50


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """Show what the club is and, to a member, how their jobs are doing."""
    context: dict[str, object] = {"photos": Photo.objects.newest()[:LATEST]}
    if request.user.is_authenticated:
        context["welcome_job"] = request.session.get(WELCOME_JOB, "")
        context["payment"] = Payment.objects.filter(member=request.user).first()
        context["own_photos"] = Photo.objects.newest().filter(owner=request.user)[
            :LATEST
        ]
    return render(request, "photo_club/home.html", context)


@never_cache
@require_GET
def jobs(request: HttpRequest) -> JsonResponse:
    """Answer ``?id=...&id=...`` with the status of these jobs, as JSON."""
    ids = request.GET.getlist("id")
    if not 0 < len(ids) <= JOBS_AT_ONCE:
        reason = f"Name between 1 and {JOBS_AT_ONCE} jobs as id=..."
        return JsonResponse({"error": reason}, status=400)
    answers = [job_status(job_id) for job_id in ids]
    return JsonResponse(
        {
            status.id: {
                "word": status.word,
                "text": status.text,
                "open": status.is_open,
                "failed_attempts": status.failed_attempts,
            }
            for status in answers
        }
    )
