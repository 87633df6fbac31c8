"""Gradients, lights and lines of hills: what the scenes are painted with."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import pi, sin

from PIL import Image, ImageDraw, ImageOps

WIDE = (1500, 1000)
TALL = (1000, 1500)
# Shapes are drawn twice as large and scaled down, which smooths their edges.
OVERSIZE = 2

Shade = tuple[int, int, int]
Colour = str | Shade
Point = tuple[float, float]


def canvas(size: tuple[int, int]) -> tuple[int, int]:
    """Return the size to paint at, for a picture of a size."""
    return size[0] * OVERSIZE, size[1] * OVERSIZE


def gradient(
    size: tuple[int, int], top: Colour, middle: Colour, bottom: Colour
) -> Image.Image:
    """A picture that fades from top over middle to bottom."""
    shades = Image.linear_gradient("L").resize(size)
    return ImageOps.colorize(shades, black=top, mid=middle, white=bottom)


def glow(picture: Image.Image, centre: Point, radius: float, colour: Colour) -> None:
    """Add a soft round light."""
    size = int(radius * 2)
    # The gradient is 181 where it meets the sides of its square. Fading to
    # nothing there, and squared, the light has no visible rim.
    light = Image.radial_gradient("L").resize((size, size))
    light = light.point(
        [int(255 * max(0, 1 - shade / 181) ** 2) for shade in range(256)]
    )
    corner = int(centre[0] - radius), int(centre[1] - radius)
    picture.paste(colour, corner, light)


def disc(picture: Image.Image, centre: Point, radius: float, colour: Colour) -> None:
    """Fill a circle."""
    x, y = centre
    ImageDraw.Draw(picture).ellipse(
        (x - radius, y - radius, x + radius, y + radius), fill=colour
    )


def ridge(
    dice: random.Random, width: int, height: float, rough: float, waves: int = 9
) -> list[Point]:
    """A line of hills from left to right: a sum of waves, each finer and lower."""
    phases = [dice.uniform(0, 2 * pi) for _ in range(waves)]
    return [
        (
            x,
            height
            + rough
            * sum(
                sin(x / width * pi * 1.7 * 1.75**n + phase) / 1.65**n
                for n, phase in enumerate(phases)
            ),
        )
        for x in range(0, width + 4, 4)
    ]


def fill_below(
    picture: Image.Image, line: Sequence[Point], top: Colour, bottom: Colour
) -> None:
    """Fill what lies below a line with a gradient."""
    width, height = picture.size
    highest = max(0, int(min(y for _, y in line)))
    mask = Image.new("L", picture.size)
    ImageDraw.Draw(mask).polygon([*line, (width, height), (0, height)], fill=255)
    shades = Image.linear_gradient("L").resize((width, height - highest))
    ground = ImageOps.colorize(shades, black=top, white=bottom)
    picture.paste(ground, (0, highest), mask.crop((0, highest, width, height)))


def blend(first: Shade, second: Shade, share: float) -> Shade:
    """The colour between two, nearer to the second as the share nears one."""
    red, green, blue = (
        round(a + (b - a) * share) for a, b in zip(first, second, strict=True)
    )
    return red, green, blue
