"""Photos are uploaded, and a worker makes their thumbnails."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from PIL import Image

from demo.failure import expect
from demo.stage import Stage, Upload
from demo.workspace import SAMPLE_PHOTOS

DAMAGED = "city-damaged.jpg"
TURNED = "lighthouse-turned.jpg"
SIZES = ("small", "medium", "large")
PHOTOGRAPHER = "alder"


def upload(stage: Stage, photo: Path, title: str, *, slowly: bool = False) -> Upload:
    """Upload a photo through the form."""
    browser = stage.members[PHOTOGRAPHER]
    page = browser.get("gallery/upload/")
    fields: dict[str, str | Path] = {"title": title, "image": photo}
    if slowly:
        fields["slowly"] = "on"
    shown = browser.submit(page, page.form(*fields), fields)
    expect(title in shown.text and shown.jobs, f"{photo.name} could not be uploaded.")
    return Upload(urlsplit(shown.url).path, shown.new_job(stage.jobs))


def upload_everything(stage: Stage) -> str:
    """Upload every sample photo."""
    photos = sorted([*SAMPLE_PHOTOS.glob("*.jpg"), *SAMPLE_PHOTOS.glob("*.png")])
    names = [photo.name for photo in photos]
    expect({DAMAGED, TURNED} < {*names}, "Some sample photos are missing.")
    for photo in photos:
        title = photo.stem.replace("-", " ").capitalize()
        stage.uploads[photo.name] = upload(stage, photo, title)
    return f"{len(photos)} jobs enqueued"


def see_thumbnails(stage: Stage) -> str:
    """Wait for the thumbnails of the whole photos, and measure them."""
    whole = [name for name in stage.uploads if name != DAMAGED]
    jobs = [stage.uploads[name].job for name in whole]
    stage.until_jobs("the thumbnails", jobs, "done")
    for name in whole:
        for width, height in measured(stage, name):
            upright = height > width
            expect(
                upright == (name == TURNED), f"{name} is not turned as it should be."
            )
    return f"{len(whole)} photos in {len(SIZES)} sizes, the turned one upright"


def measured(stage: Stage, name: str) -> list[tuple[int, int]]:
    """Return the sizes of a photo's thumbnails, decoded from their files."""
    number = stage.uploads[name].path.strip("/").rpartition("/")[2]
    sizes = []
    for size in SIZES:
        path = stage.workspace.media / "thumbnails" / f"{number}-{size}.jpg"
        expect(path.exists(), f"The {size} thumbnail of {name} is missing.")
        with Image.open(path) as picture:
            picture.load()
            sizes.append(picture.size)
    return sizes


def see_damage(stage: Stage) -> str:
    """Wait for the damaged photo to fail: at once, since trying again is no help."""
    job = stage.uploads[DAMAGED].job
    failed = stage.until_jobs("the damaged photo", [job], "failed")
    expect(failed[job] == 1, f"The damaged photo was tried {failed[job]} times.")
    page = stage.members[PHOTOGRAPHER].get(stage.uploads[DAMAGED].path)
    expect(page.jobs.get(job) == "failed", "Its page does not say that it failed.")
    return "after one attempt"
