"""Scenes without a house, each a function from a seeded dice to a picture."""

from __future__ import annotations

import random

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from sample_photos.brushes import (
    WIDE,
    blend,
    canvas,
    disc,
    fill_below,
    glow,
    gradient,
    ridge,
)


def sunset_sea(dice: random.Random) -> Image.Image:
    """A sailing boat on a calm sea, the sun just above the horizon."""
    width, height = size = canvas(WIDE)
    horizon = int(height * 0.62)
    picture = gradient(size, "#2b2a5c", "#e2735b", "#ffd59a")
    picture = picture.transform(
        size, Image.Transform.EXTENT, (0, 0, width, height * 1.55)
    )
    sun = (width * 0.58, horizon - height * 0.07)
    glow(picture, sun, height * 0.75, "#ffb56b")
    glow(picture, sun, height * 0.30, "#ffe7b8")
    disc(picture, sun, height * 0.075, "#fff6df")
    for _ in range(16):  # thin clouds, brighter near the sun
        x, y = dice.uniform(0, width), dice.uniform(height * 0.10, horizon * 0.92)
        cloud = Image.new("L", size)
        reach = dice.uniform(0.10, 0.26) * width
        ImageDraw.Draw(cloud).ellipse(
            (x - reach, y - height * 0.006, x + reach, y + height * 0.006), fill=70
        )
        cloud = cloud.resize((width // 8, height // 8)).filter(
            ImageFilter.GaussianBlur(5)
        )
        picture.paste("#ffcf9e", (0, 0), cloud.resize(size))
    sea = gradient((width, height - horizon), "#b85a62", "#46406f", "#191b3d")
    picture.paste(sea, (0, horizon))
    brush = ImageDraw.Draw(picture, "RGBA")
    for step in range(260):  # the sun's road on the water
        depth = (step / 260) ** 1.6
        y = horizon + 4 + depth * (height - horizon)
        spread = height * (0.05 + 0.20 * depth)
        x = dice.gauss(sun[0], spread * 0.7)
        reach = dice.uniform(0.02, 0.06) * width * (0.35 + depth)
        light = int(190 * (1 - depth) + 30)
        brush.ellipse(
            (x - reach, y, x + reach, y + 3 + 9 * depth), fill=(255, 205, 150, light)
        )
    boat = width * 0.27, horizon + height * 0.03
    sail = height * 0.12
    brush.polygon(
        [
            (boat[0] - sail * 0.55, boat[1]),
            (boat[0] + sail * 0.55, boat[1]),
            (boat[0] + sail * 0.35, boat[1] + sail * 0.16),
            (boat[0] - sail * 0.38, boat[1] + sail * 0.16),
        ],
        fill="#1d1838",
    )
    brush.polygon(
        [
            (boat[0], boat[1] - sail),
            (boat[0], boat[1] - 8),
            (boat[0] + sail * 0.5, boat[1] - 8),
        ],
        fill="#2a2048",
    )
    brush.polygon(
        [
            (boat[0] - 8, boat[1] - sail * 0.8),
            (boat[0] - 8, boat[1] - 8),
            (boat[0] - sail * 0.36, boat[1] - 8),
        ],
        fill="#35285a",
    )
    return picture


def misty_mountains(dice: random.Random) -> Image.Image:
    """Seven ridges, each nearer and darker than the one behind it."""
    width, height = size = canvas(WIDE)
    picture = gradient(size, "#8fb8d6", "#dfe9ee", "#f7efe2")
    glow(picture, (width * 0.3, height * 0.22), height * 0.6, "#fff7e0")
    far, near = (176, 200, 216), (22, 52, 66)
    layers = 7
    for layer in range(layers):
        share = layer / (layers - 1)
        colour = blend(far, near, share)
        mist = blend(colour, (238, 240, 236), 0.62 * (1 - share * 0.75))
        line = ridge(dice, width, height * (0.34 + 0.50 * share), height * 0.062)
        fill_below(picture, line, colour, mist)
    return picture


def northern_lights(dice: random.Random) -> Image.Image:
    """Green and violet curtains over a dark forest."""
    width, height = size = canvas(WIDE)
    picture = gradient(size, "#050b1e", "#0b2038", "#1c4a56")
    brush = ImageDraw.Draw(picture)
    for _ in range(520):
        x, y = dice.uniform(0, width), dice.uniform(0, height * 0.75)
        star = dice.choice((1, 1, 2, 2, 3, 4))
        shade = dice.randint(130, 255)
        brush.ellipse((x, y, x + star, y + star), fill=(shade, shade, 255))
    for colour, level, strength in (
        ("#2fe08f", 0.56, 118),
        ("#59f0c0", 0.44, 84),
        ("#9a6cf0", 0.33, 66),
    ):
        small = width // 4, height // 4
        curtain = Image.new("L", small)
        rays = ImageDraw.Draw(curtain)
        line = ridge(dice, small[0], small[1] * level, small[1] * 0.055, waves=5)
        shimmer = [dice.uniform(0.3, 1.0) for _ in line]
        for (x, y), bright in zip(line, shimmer, strict=True):
            reach = small[1] * 0.36 * bright
            for part in range(24):  # a ray fades upwards
                share = part / 24
                rays.line(
                    (x, y - reach * share, x, y - reach * (share + 0.05)),
                    fill=int(strength * bright * (1 - share) ** 1.4),
                    width=5,
                )
        curtain = curtain.filter(ImageFilter.GaussianBlur(7)).resize(
            size, Image.Resampling.BICUBIC
        )
        light = Image.new("RGB", size, colour)
        light = Image.composite(light, Image.new("RGB", size), curtain)
        picture = ImageChops.screen(picture, light)
        picture = ImageChops.screen(picture, light)
    fill_below(
        picture, ridge(dice, width, height * 0.80, height * 0.03), "#0a1c26", "#06121a"
    )
    brush = ImageDraw.Draw(picture)
    x = -40.0
    while x < width + 40:
        tree = height * dice.uniform(0.09, 0.24)
        foot = height * dice.uniform(0.94, 1.02)
        for branch in range(9):
            top = foot - tree * (1 - branch / 10)
            reach = tree * 0.045 * (branch + 0.6)
            brush.polygon(
                [
                    (x, top - tree * 0.10),
                    (x - reach, top + tree * 0.06),
                    (x + reach, top + tree * 0.06),
                ],
                fill="#03090d",
            )
        brush.rectangle((x - 5, foot - tree * 0.2, x + 5, foot + 60), fill="#03090d")
        x += dice.uniform(0.014, 0.05) * width
    return picture


def dunes(dice: random.Random) -> Image.Image:
    """Four dunes under a pale morning sun."""
    width, height = size = canvas(WIDE)
    picture = gradient(size, "#3f87a6", "#a9d0d4", "#fbe9cf")
    disc(picture, (width * 0.78, height * 0.20), height * 0.055, "#fffaf0")
    glow(picture, (width * 0.78, height * 0.20), height * 0.30, "#fff5dc")
    for light, shade, level in (
        ("#f2cf9d", "#eec08a", 0.52),
        ("#eab877", "#d99b5c", 0.62),
        ("#dd9c58", "#b9713f", 0.74),
        ("#c87c40", "#7d4427", 0.87),
    ):
        crest = ridge(dice, width, height * level, height * 0.055, waves=3)
        fill_below(picture, crest, light, shade)
        # The lee side: a dark flank that leaves the crest at its highest point.
        peak = min(range(len(crest)), key=lambda place: crest[place][1])
        flank = crest[peak:]
        lower = [
            (
                x - width * 0.10 * (1 - n / len(flank)),
                y + height * 0.16 * (n / len(flank)) + 6,
            )
            for n, (x, y) in enumerate(flank)
        ]
        shadow = Image.new("L", size)
        ImageDraw.Draw(shadow).polygon([*flank, *reversed(lower)], fill=150)
        picture.paste(shade, (0, 0), shadow.filter(ImageFilter.GaussianBlur(6)))
    return picture


def paper_hills(dice: random.Random) -> Image.Image:
    """Flat shapes on a transparent ground: a PNG with an alpha channel."""
    width, height = size = canvas(WIDE)
    picture = Image.new("RGBA", size, (0, 0, 0, 0))
    brush = ImageDraw.Draw(picture)
    brush.ellipse(
        (width * 0.56, height * 0.10, width * 0.84, height * 0.52), fill="#f6b042"
    )
    for colour, level in (
        ("#7fb7a5", 0.52),
        ("#4f9a8d", 0.63),
        ("#2f7a78", 0.74),
        ("#1d5763", 0.86),
    ):
        line = ridge(dice, width, height * level, height * 0.07, waves=2)
        brush.polygon([*line, (width, height), (0, height)], fill=colour)
    for place, rise in ((0.20, 0.22), (0.27, 0.29), (0.36, 0.17)):
        x, y, wing = width * place, height * rise, width * 0.018
        brush.line(
            [(x - wing, y - wing * 0.5), (x, y), (x + wing, y - wing * 0.5)],
            fill="#1d5763",
            width=12,
            joint="curve",
        )
    return picture
