"""Photos and their thumbnails."""

from __future__ import annotations

from django.apps import AppConfig


class GalleryConfig(AppConfig):
    """Photos and their thumbnails."""

    name = "gallery"
