"""The addresses of the gallery."""

from __future__ import annotations

from django.urls import path

from gallery import views

app_name = "gallery"

urlpatterns = [
    path("", views.gallery, name="gallery"),
    path("upload/", views.upload, name="upload"),
    path("<int:pk>/", views.photo, name="photo"),
]
