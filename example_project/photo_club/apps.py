"""The project itself is an app: it has templates, static files and a tag."""

from __future__ import annotations

from django.apps import AppConfig


class PhotoClubConfig(AppConfig):
    """The pages that belong to no single part of the club."""

    name = "photo_club"
