"""Scenes with a lighthouse or a city in them, painted like the landscapes."""

from __future__ import annotations

import random

from PIL import Image, ImageDraw, ImageFilter, ImageOps

from sample_photos.brushes import TALL, WIDE, canvas, disc, glow, gradient

ANTENNAS = 0.25  # share of the houses
LIT_WINDOWS = 0.30  # share of the windows


def lighthouse(dice: random.Random) -> Image.Image:
    """A striped tower on a cliff at nightfall; a tall picture."""
    width, height = size = canvas(TALL)
    picture = gradient(size, "#16224a", "#7a5c8e", "#f3a683")
    for _ in range(160):
        x, y = dice.uniform(0, width), dice.uniform(0, height * 0.4)
        disc(picture, (x, y), dice.choice((1, 2, 2, 3)), "#dfe4ff")
    lamp = width * 0.56, height * 0.285
    for low, high, strength in ((-0.10, 0.06, 90), (-0.05, 0.02, 120)):
        beam = Image.new("L", size)
        ImageDraw.Draw(beam).polygon(
            [lamp, (-40, lamp[1] + height * low), (-40, lamp[1] + height * high)],
            fill=strength,
        )
        picture.paste("#ffeec2", (0, 0), beam.filter(ImageFilter.GaussianBlur(22)))
    sea = gradient((width, int(height * 0.25)), "#c98a86", "#54527f", "#1e2850")
    picture.paste(sea, (0, int(height * 0.75)))
    brush = ImageDraw.Draw(picture, "RGBA")
    for _ in range(150):
        y = dice.uniform(height * 0.76, height)
        x, reach = dice.uniform(0, width), dice.uniform(20, 130)
        brush.line((x, y, x + reach, y), fill=(255, 214, 190, 60), width=4)
    cliff = [
        (width * 0.22, height),
        (width * 0.30, height * 0.86),
        (width * 0.38, height * 0.80),
        (width * 0.44, height * 0.735),
        (width * 0.70, height * 0.72),
        (width, height * 0.76),
        (width, height),
    ]
    brush.polygon(cliff, fill="#241f3a")
    brush.polygon(
        [
            (width * 0.44, height * 0.735),
            (width * 0.70, height * 0.72),
            (width, height * 0.76),
            (width, height * 0.78),
            (width * 0.5, height * 0.76),
        ],
        fill="#3b3a55",
    )
    foot, head = height * 0.728, height * 0.325
    for band in range(6):  # the tower narrows towards its head
        upper = head + (foot - head) * band / 6
        lower = head + (foot - head) * (band + 1) / 6
        left = width * (0.060 + 0.006 * band), width * (0.060 + 0.006 * (band + 1))
        shade = "#f4ede4" if band % 2 else "#c8434a"
        brush.polygon(
            [
                (lamp[0] - left[0], upper),
                (lamp[0] + left[0], upper),
                (lamp[0] + left[1], lower),
                (lamp[0] - left[1], lower),
            ],
            fill=shade,
        )
        brush.polygon(
            [
                (lamp[0] + left[0] * 0.25, upper),
                (lamp[0] + left[0], upper),
                (lamp[0] + left[1], lower),
                (lamp[0] + left[1] * 0.25, lower),
            ],
            fill=(20, 18, 50, 80),
        )
    wide = width * 0.078
    brush.rectangle((lamp[0] - wide, head - 26, lamp[0] + wide, head), fill="#1c1930")
    brush.rectangle(
        (lamp[0] - wide * 0.55, head - 150, lamp[0] + wide * 0.55, head - 26),
        fill="#ffe9b0",
    )
    brush.polygon(
        [
            (lamp[0] - wide * 0.72, head - 150),
            (lamp[0] + wide * 0.72, head - 150),
            (lamp[0], head - 235),
        ],
        fill="#1c1930",
    )
    glow(picture, lamp, width * 0.24, "#fff2cc")
    return picture


def city_at_dusk(dice: random.Random) -> Image.Image:
    """Lit windows along a river, and their reflection."""
    width, height = size = canvas(WIDE)
    shore = int(height * 0.70)
    picture = gradient(size, "#1b2350", "#93567f", "#f8b07b")
    glow(picture, (width * 0.5, shore), height * 0.55, "#ffc98f")
    for colour, tallest, wide in (("#4a3f6b", 0.34, 0.05), ("#231f42", 0.46, 0.065)):
        x = -20.0
        brush = ImageDraw.Draw(picture)
        while x < width:
            house = width * dice.uniform(0.5, 1.0) * wide
            top = shore - height * dice.uniform(0.3, 1.0) * tallest
            brush.rectangle((x, top, x + house, shore), fill=colour)
            if dice.random() < ANTENNAS:
                brush.rectangle(
                    (x + house * 0.48, top - 90, x + house * 0.52, top), fill=colour
                )
            for row in range(int((shore - top) / 44)):
                for column in range(int(house / 36)):
                    if dice.random() < LIT_WINDOWS:
                        left, upper = x + 12 + column * 36, top + 16 + row * 44
                        brush.rectangle(
                            (left, upper, left + 14, upper + 20),
                            fill=dice.choice(("#ffd98a", "#ffc46b", "#ffe9bd")),
                        )
            x += house + dice.uniform(0, 30)
    mirror = ImageOps.flip(picture.crop((0, shore - (height - shore), width, shore)))
    mirror = mirror.filter(ImageFilter.BoxBlur((2, 14)))
    water = Image.blend(mirror, Image.new("RGB", mirror.size, "#191a3f"), 0.45)
    picture.paste(water, (0, shore))
    return picture
