"""Photos in the admin."""

# mypy: disable-error-code="type-arg"
# Django's classes take type arguments in its stubs only.

from __future__ import annotations

from django.contrib import admin

from gallery.models import Photo, Thumbnail


class ThumbnailInline(admin.TabularInline):
    """The thumbnails, which only the job makes."""

    model = Thumbnail
    extra = 0
    can_delete = False
    readonly_fields = ("size", "image", "width", "height")

    def has_add_permission(self, *_: object) -> bool:
        """Nobody adds one by hand."""
        return False


@admin.register(Photo)
class PhotoAdmin(admin.ModelAdmin):
    """Photos, the newest first."""

    list_display = ("title", "owner", "uploaded_at", "job_id")
    list_filter = ("owner",)
    search_fields = ("title", "job_id")
    date_hierarchy = "uploaded_at"
    readonly_fields = ("job_id",)
    inlines = (ThumbnailInline,)
