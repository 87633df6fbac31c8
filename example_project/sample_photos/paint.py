"""Paints the sample photos of this folder, with nothing but Pillow and a seed.

Run ``python -m sample_photos.paint`` in the folder above to paint them again. One
of them is turned by its EXIF orientation and one is cut off in the middle, because
members' uploads are like that too.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from sample_photos import buildings, landscapes
from sample_photos.brushes import TALL, WIDE

FOLDER = Path(__file__).resolve().parent
ORIENTATION = 0x0112  # the EXIF tag
TURN_RIGHT = 6  # "show me turned by 90 degrees to the right"


Scene = Callable[[random.Random], Image.Image]

LANDSCAPES: dict[str, Scene] = {
    "sunset-sea.jpg": landscapes.sunset_sea,
    "misty-mountains.jpg": landscapes.misty_mountains,
    "northern-lights.jpg": landscapes.northern_lights,
    "dunes.jpg": landscapes.dunes,
}


def painted(scene: Scene, size: tuple[int, int], seed: str) -> Image.Image:
    """Paint one scene; the same seed gives the same picture."""
    dice = random.Random(seed)  # noqa: S311  A picture's dice protect nothing.
    return scene(dice).resize(size, Image.Resampling.LANCZOS)


def paint(folder: Path = FOLDER) -> list[Path]:
    """Paint every sample photo into a folder and return their paths."""
    made = []
    for name, draw in LANDSCAPES.items():
        picture = painted(draw, WIDE, name)
        picture.save(folder / name, quality=82, optimize=True)
        made.append(folder / name)
    made.append(paint_turned(folder / "lighthouse-turned.jpg"))
    made.append(paint_transparent(folder / "paper-hills.png"))
    made.append(paint_damaged(folder / "city-damaged.jpg"))
    return made


def paint_turned(path: Path) -> Path:
    """A tall picture stored lying, as a camera held upright stores it."""
    picture = painted(buildings.lighthouse, TALL, path.name)
    exif = Image.Exif()
    exif[ORIENTATION] = TURN_RIGHT
    lying = picture.transpose(Image.Transpose.ROTATE_90)
    lying.save(path, quality=82, optimize=True, exif=exif)
    return path


def paint_transparent(path: Path) -> Path:
    """Paint a picture with see-through parts, which thumbnails cannot have."""
    picture = painted(landscapes.paper_hills, WIDE, path.name)
    picture.save(path, optimize=True)
    return path


def paint_damaged(path: Path) -> Path:
    """A picture whose second half is missing, as after a broken upload."""
    picture = painted(buildings.city_at_dusk, WIDE, path.name)
    picture.save(path, quality=82, optimize=True)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 55 // 100])
    return path


if __name__ == "__main__":
    for path in paint():
        print(f"{path.name}: {path.stat().st_size // 1024} KiB")
