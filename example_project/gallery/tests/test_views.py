"""Uploads are kept, their thumbnails are jobs, and the pages show both."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django_nobroker.testing import run_tasks
from PIL import Image

from gallery.models import Photo, Thumbnail
from gallery.tasks import make_thumbnails
from photo_club.testing import SAMPLE_PHOTOS, SiteTestCase


class UploadTests(SiteTestCase):
    def upload(self, name: str, **fields: object) -> Any:
        content = (SAMPLE_PHOTOS / name).read_bytes()
        form = {"title": name, "image": SimpleUploadedFile(name, content), **fields}
        return self.client.post(reverse("gallery:upload"), form, follow=True)

    def test_only_members_upload(self) -> None:
        page = self.client.get(reverse("gallery:upload"))

        self.assertRedirects(page, "/log-in/?next=/gallery/upload/")

    def test_the_page_has_a_form(self) -> None:
        self.log_in()

        page = self.client.get(reverse("gallery:upload"))

        self.assertContains(page, 'enctype="multipart/form-data"')

    def test_an_upload_waits_for_the_worker_and_then_has_every_size(self) -> None:
        self.log_in()

        page = self.upload("dunes.jpg")
        self.assertContains(page, '<span class="job waiting"')
        self.assertFalse(Thumbnail.objects.exists())

        run_tasks()

        sizes = {thumb.size: thumb.width for thumb in Thumbnail.objects.all()}
        self.assertEqual({"small": 240, "medium": 640, "large": 1200}, sizes)
        page = self.client.get(page.request["PATH_INFO"])
        self.assertContains(page, "640 × 427")
        self.assertContains(page, '<span class="job done"')

    def test_the_name_of_the_upload_is_not_the_name_of_the_file(self) -> None:
        self.log_in()

        self.upload("dunes.jpg")

        self.assertRegex(Photo.objects.get().image.name, r"^photos/[0-9a-f]{32}\.jpg$")

    def test_thumbnails_of_a_turned_photo_stand_upright(self) -> None:
        self.log_in()
        self.upload("lighthouse-turned.jpg")

        run_tasks()

        for thumb in Thumbnail.objects.all():
            self.assertGreater(thumb.height, thumb.width)

    def test_a_damaged_photo_fails_at_once_and_says_so(self) -> None:
        self.log_in()
        page = self.upload("city-damaged.jpg")

        (result,) = run_tasks()

        self.assertEqual("FAILED", result.status)
        self.assertEqual(1, result.attempts)
        self.assertIn("DamagedPhotoError", result.errors[0].exception_class_path)
        page = self.client.get(page.request["PATH_INFO"])
        self.assertContains(page, '<span class="job failed"')

    def test_a_file_that_is_no_picture_is_refused_by_the_form(self) -> None:
        self.log_in()

        page = self.upload("paint.py")

        self.assertContains(page, "Upload a valid image")
        self.assertFalse(Photo.objects.exists())

    def test_a_picture_in_another_format_is_refused_by_the_form(self) -> None:
        self.log_in()
        content = BytesIO()
        Image.new("RGB", (4, 4)).save(content, format="GIF")
        form = {
            "title": "tiny",
            "image": SimpleUploadedFile("tiny.gif", content.getvalue()),
        }

        page = self.client.post(reverse("gallery:upload"), form)

        self.assertContains(page, "File extension “gif” is not allowed")
        self.assertFalse(Photo.objects.exists())

    def test_a_second_run_makes_only_what_is_missing(self) -> None:
        self.log_in()
        self.upload("dunes.jpg")
        run_tasks()
        Thumbnail.objects.filter(size="medium").delete()
        result = make_thumbnails.enqueue(Photo.objects.get().pk)
        run_tasks()
        result.refresh()

        self.assertEqual(
            [f"thumbnails/{Photo.objects.get().pk}-medium.jpg"], result.return_value
        )


class GalleryTests(SiteTestCase):
    def test_an_empty_gallery_says_what_to_do(self) -> None:
        page = self.client.get(reverse("gallery:gallery"))

        self.assertContains(page, "No photo yet")

    def test_a_title_is_text_and_not_html(self) -> None:
        user = self.log_in()
        Photo.objects.create(owner=user, title="<b>bold</b>", image="photos/none.jpg")

        page = self.client.get(reverse("gallery:gallery"))

        self.assertContains(page, "&lt;b&gt;bold")

    def test_the_number_of_queries_does_not_grow_with_the_photos(self) -> None:
        user = self.log_in()

        def made(title: str) -> None:
            photo = Photo.objects.create(owner=user, title=title, image="a.jpg")
            for size in Thumbnail.Size:
                Thumbnail.objects.create(
                    photo=photo, size=size, image="b.jpg", width=3, height=2
                )

        made("one")
        with self.assertNumQueries(4):  # session, user, photos, thumbnails
            self.client.get(reverse("gallery:gallery"))
        made("two")
        made("three")
        with self.assertNumQueries(4):
            self.client.get(reverse("gallery:gallery"))

    def test_a_photo_that_is_not_there_is_not_found(self) -> None:
        self.assertEqual(404, self.client.get("/gallery/4711/").status_code)
