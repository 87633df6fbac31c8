"""Makes one small picture of a large one, whatever its format; knows no models."""

from __future__ import annotations

import os
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

PAPER = "white"  # shines through where a picture is transparent
QUALITY = 82


class DamagedPhotoError(Exception):
    """A file is not a whole picture; trying again does not change that."""


def opened(source: Path) -> Image.Image:
    """Return a picture upright and opaque, or raise :class:`DamagedPhotoError`.

    An error of the disk is raised as it is: the next attempt may be luckier.
    """
    with source.open("rb") as file:
        try:
            with Image.open(file) as picture:
                # Cameras store a photo as the sensor lay and note how to turn it.
                upright = ImageOps.exif_transpose(picture)
                return opaque(upright)
        except UnidentifiedImageError:
            raise DamagedPhotoError(
                "This is not a picture of a known format."
            ) from None
        # Pillow raises SyntaxError for a few kinds of broken headers.
        except (OSError, SyntaxError, Image.DecompressionBombError) as error:
            if getattr(error, "errno", None) is not None:
                raise
            raise DamagedPhotoError(f"This is not a whole picture: {error}.") from None


def opaque(picture: Image.Image) -> Image.Image:
    """Return a picture on white paper, without transparent parts."""
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    layer = picture.convert("RGBA")
    paper = Image.new("RGB", layer.size, PAPER)
    paper.paste(layer, mask=layer.getchannel("A"))
    return paper


def make_thumbnail(picture: Image.Image, target: Path, edge: int) -> tuple[int, int]:
    """Write a picture that fits into a square of ``edge`` pixels; return its size.

    The file appears whole or not at all, and a second call replaces it: a worker
    may be killed at any moment, and a job may run twice.
    """
    small = picture.copy()
    small.thumbnail((edge, edge), Image.Resampling.LANCZOS)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.{os.getpid()}.draft")
    small.save(draft, format="JPEG", quality=QUALITY, optimize=True, progressive=True)
    draft.replace(target)
    return small.size
