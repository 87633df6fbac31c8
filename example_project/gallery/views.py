"""Looking at photos, and uploading them."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from gallery.forms import UploadForm
from gallery.models import Photo
from gallery.tasks import make_thumbnails

SLOWLY = 2.0  # seconds of rest before each thumbnail
PHOTOS_SHOWN = 60


@require_GET
def gallery(request: HttpRequest) -> HttpResponse:
    """Show the newest photos of all members."""
    photos = Photo.objects.newest()[:PHOTOS_SHOWN]
    return render(request, "gallery/gallery.html", {"photos": photos})


@require_GET
def photo(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one photo and how its thumbnails are doing."""
    shown = get_object_or_404(Photo.objects.newest(), pk=pk)
    return render(request, "gallery/photo.html", {"photo": shown})


@login_required
@require_http_methods(["GET", "POST"])
def upload(request: HttpRequest) -> HttpResponse:
    """Keep an upload; a worker makes the thumbnails, so nobody waits for them."""
    form = UploadForm(request.POST or None, request.FILES or None)
    if not form.is_valid():
        return render(request, "gallery/upload.html", {"form": form})
    uploaded = form.save(commit=False)
    uploaded.owner = cast("User", request.user)
    uploaded.save()
    rest = SLOWLY if form.cleaned_data["slowly"] else 0.0
    result = make_thumbnails.enqueue(uploaded.pk, rest=rest)
    uploaded.job_id = result.id
    uploaded.save(update_fields=["job_id"])
    messages.success(request, f"“{uploaded.title}” is kept. Its thumbnails are next.")
    return redirect(uploaded)
