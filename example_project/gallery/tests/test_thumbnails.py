"""Thumbnails fit, stand upright and are opaque; damaged files are told apart."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path
from unittest import TestCase
from unittest.mock import patch

from PIL import Image

from gallery.thumbnails import DamagedPhotoError, make_thumbnail, opened
from photo_club.testing import SAMPLE_PHOTOS


def colour(picture: Image.Image, at: tuple[int, int]) -> tuple[int, ...]:
    found = picture.getpixel(at)
    assert isinstance(found, tuple)
    return found


class OpenedTests(TestCase):
    def test_a_turned_photo_is_stored_lying_and_opened_upright(self) -> None:
        path = SAMPLE_PHOTOS / "lighthouse-turned.jpg"
        with Image.open(path) as stored:
            self.assertEqual((1500, 1000), stored.size)

        self.assertEqual((1000, 1500), opened(path).size)

    def test_a_turned_photo_has_its_sky_at_the_top(self) -> None:
        picture = opened(SAMPLE_PHOTOS / "lighthouse-turned.jpg")

        sky, cliff = colour(picture, (900, 20)), colour(picture, (900, 1480))
        self.assertGreater(sky[2], sky[0])  # a blue night
        self.assertLess(sum(cliff), 160)  # a dark rock

    def test_a_transparent_photo_lies_on_white_paper(self) -> None:
        picture = opened(SAMPLE_PHOTOS / "paper-hills.png")

        self.assertEqual("RGB", picture.mode)
        self.assertEqual((255, 255, 255), picture.getpixel((5, 5)))

    def test_a_palette_with_a_transparent_colour_lies_on_white_paper(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "palette.png"
            picture = Image.new("P", (4, 4), 0)
            picture.putpalette([0, 0, 0, 255, 0, 0])
            picture.save(path, transparency=0)

            self.assertEqual((255, 255, 255), opened(path).getpixel((1, 1)))

    def test_a_cut_off_photo_is_damaged(self) -> None:
        with self.assertRaisesRegex(
            DamagedPhotoError, "not a whole picture: image file is truncated"
        ):
            opened(SAMPLE_PHOTOS / "city-damaged.jpg")

    def test_a_file_that_is_no_picture_is_damaged(self) -> None:
        with self.assertRaisesRegex(DamagedPhotoError, "not a picture of a known"):
            opened(SAMPLE_PHOTOS / "paint.py")

    def test_an_error_of_the_disk_is_not_called_damage(self) -> None:
        broken = OSError(errno.EIO, "Input/output error")
        with (
            patch("gallery.thumbnails.ImageOps.exif_transpose", side_effect=broken),
            self.assertRaises(OSError) as caught,
        ):
            opened(SAMPLE_PHOTOS / "dunes.jpg")

        self.assertIs(broken, caught.exception)

    def test_a_missing_file_is_not_called_damaged(self) -> None:
        with self.assertRaises(FileNotFoundError):
            opened(SAMPLE_PHOTOS / "no-such-photo.jpg")


class MakeThumbnailTests(TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.target = self.folder / "new" / "small.jpg"

    def test_it_fits_into_the_square_and_keeps_its_shape(self) -> None:
        size = make_thumbnail(Image.new("RGB", (1500, 1000)), self.target, 240)

        self.assertEqual((240, 160), size)
        with Image.open(self.target) as made:
            self.assertEqual(((240, 160), "JPEG"), (made.size, made.format))

    def test_a_picture_is_never_enlarged(self) -> None:
        size = make_thumbnail(Image.new("RGB", (100, 50)), self.target, 240)

        self.assertEqual((100, 50), size)

    def test_made_twice_it_is_replaced_and_leaves_no_draft(self) -> None:
        make_thumbnail(Image.new("RGB", (300, 300), "red"), self.target, 240)
        make_thumbnail(Image.new("RGB", (300, 300), "blue"), self.target, 240)

        self.assertEqual([self.target], list(self.target.parent.iterdir()))
        with Image.open(self.target) as made:
            self.assertGreater(colour(made, (9, 9))[2], 200)
