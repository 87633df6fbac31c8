"""Photos and their thumbnails."""

from __future__ import annotations

import uuid
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

from django.conf import settings
from django.db import models
from django.urls import reverse

if TYPE_CHECKING:
    from django_stubs_ext.db.models.manager import RelatedManager


def photo_path(_photo: Photo, filename: str) -> str:
    """Return where an upload is kept: under a name that nobody can choose."""
    return f"photos/{uuid.uuid4().hex}{PurePath(filename).suffix.lower()}"


class PhotoQuerySet(models.QuerySet["Photo"]):
    """Photos, with what a page needs of them."""

    def newest(self) -> PhotoQuerySet:
        """Return the newest first, with owners and thumbnails at hand."""
        photos = self.order_by("-uploaded_at", "-pk")
        return photos.select_related("owner").prefetch_related("thumbnails")


class Photo(models.Model):
    """A picture that a member uploaded."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="photos"
    )
    title = models.CharField(max_length=80)
    image = models.ImageField(upload_to=photo_path)
    uploaded_at = models.DateTimeField(auto_now_add=True)
    # The job that makes the thumbnails; empty until it is enqueued.
    job_id = models.CharField(max_length=200, blank=True, editable=False)

    thumbnails: RelatedManager[Thumbnail]

    objects: ClassVar = PhotoQuerySet.as_manager()

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        """Return the address of the photo's page."""
        return reverse("gallery:photo", args=[self.pk])

    def thumbnail(self, size: str) -> Thumbnail | None:
        """Return the thumbnail of a size, or None while there is none."""
        # Picked from all of them, so that a prefetched page asks once.
        made = (thumb for thumb in self.thumbnails.all() if thumb.size == size)
        return next(made, None)

    @property
    def small(self) -> Thumbnail | None:
        """The thumbnail for lists."""
        return self.thumbnail(Thumbnail.Size.SMALL)

    @property
    def medium(self) -> Thumbnail | None:
        """The thumbnail for the gallery."""
        return self.thumbnail(Thumbnail.Size.MEDIUM)

    @property
    def large(self) -> Thumbnail | None:
        """The thumbnail for the photo's own page."""
        return self.thumbnail(Thumbnail.Size.LARGE)

    @property
    def is_complete(self) -> bool:
        """Whether every thumbnail is there."""
        return len(self.thumbnails.all()) == len(Thumbnail.Size)


class Thumbnail(models.Model):
    """A smaller copy of a photo."""

    class Size(models.TextChoices):
        """The sizes, named by what they are for."""

        SMALL = "small"
        MEDIUM = "medium"
        LARGE = "large"

        @property
        def edge(self) -> int:
            """The longest edge, in pixels."""
            return {"small": 240, "medium": 640, "large": 1200}[self.value]

    photo = models.ForeignKey(
        Photo, on_delete=models.CASCADE, related_name="thumbnails"
    )
    size = models.CharField(max_length=10, choices=Size.choices)
    image = models.ImageField()
    width = models.PositiveIntegerField()
    height = models.PositiveIntegerField()

    objects: ClassVar = models.Manager["Thumbnail"]()

    class Meta:
        """One of each size."""

        constraints: ClassVar = [
            models.UniqueConstraint(fields=["photo", "size"], name="one_of_each_size")
        ]
        ordering: ClassVar = ["width"]

    def __str__(self) -> str:
        return f"{self.photo} ({self.size})"
