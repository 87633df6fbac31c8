"""The form with which a member uploads a photo."""

# mypy: disable-error-code="type-arg"
# Django's classes take type arguments in its stubs only.

from __future__ import annotations

from django import forms
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.core.validators import FileExtensionValidator

from gallery.models import Photo

LARGEST_UPLOAD = 10 * 1024 * 1024
FORMATS = ["jpg", "jpeg", "png", "webp"]


def not_too_large(file: UploadedFile) -> None:
    """Refuse a file that would fill the disk."""
    if (file.size or 0) > LARGEST_UPLOAD:
        raise ValidationError("A photo may have up to 10 MB.")


class UploadForm(forms.ModelForm):
    """A title and a file; the file is only looked at, not decoded, here."""

    image = forms.ImageField(
        label="Photo",
        help_text="JPEG, PNG or WebP, up to 10 MB.",
        validators=[FileExtensionValidator(FORMATS), not_too_large],
        widget=forms.FileInput(attrs={"accept": "image/jpeg,image/png,image/webp"}),
    )
    slowly = forms.BooleanField(
        label="Make the thumbnails slowly",
        required=False,
        help_text=(
            "Two seconds for each, so that you can watch the job run, or kill the "
            "worker in the middle of it."
        ),
    )

    class Meta:
        """The fields, in the order of the page."""

        model = Photo
        fields = ("title", "image")
