"""The addresses of the site."""

from __future__ import annotations

from django.conf import settings
from django.conf.urls.static import static
from django.contrib import admin
from django.urls import include, path

from photo_club import views

urlpatterns = [
    path("", views.home, name="home"),
    path("jobs/", views.jobs, name="jobs"),
    path("", include("members.urls")),
    path("gallery/", include("gallery.urls")),
    path("membership/", include("membership.urls")),
    path("admin/", admin.site.urls),
    # Only while DEBUG is on; on a real site the web server does this.
    *static(settings.MEDIA_URL, document_root=settings.MEDIA_ROOT),
]
