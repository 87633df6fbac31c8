"""The job that makes a photo's thumbnails."""

from __future__ import annotations

import time
from pathlib import Path

from django.conf import settings
from django_nobroker import task

from gallery.models import Photo, Thumbnail
from gallery.thumbnails import DamagedPhotoError, make_thumbnail, opened


@task(
    queue_name="thumbnails",
    max_attempts=3,
    backoff={"base": 0.5, "factor": 2.0, "jitter": 0.0},
    no_retry_on=(DamagedPhotoError, Photo.DoesNotExist),
)
def make_thumbnails(photo_id: int, rest: float = 0.0) -> list[str]:
    """Make every size of a photo that is missing, and return the names made.

    ``rest`` is a pause in seconds before each, for those who want to watch, or to
    kill the worker in the middle. The next attempt goes on where that one ended.
    """
    photo = Photo.objects.get(pk=photo_id)
    picture = opened(Path(photo.image.path))
    made = []
    for size in Thumbnail.Size:
        if photo.thumbnails.filter(size=size).exists():
            continue
        time.sleep(rest)
        name = f"thumbnails/{photo.pk}-{size}.jpg"
        width, height = make_thumbnail(
            picture, Path(settings.MEDIA_ROOT) / name, size.edge
        )
        Thumbnail.objects.update_or_create(
            photo=photo,
            size=size,
            defaults={"image": name, "width": width, "height": height},
        )
        made.append(name)
    return made
