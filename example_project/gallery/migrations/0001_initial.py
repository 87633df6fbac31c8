"""The first tables."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import gallery.models


class Migration(migrations.Migration):
    """Makes them."""

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Photo",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("title", models.CharField(max_length=80)),
                ("image", models.ImageField(upload_to=gallery.models.photo_path)),
                ("uploaded_at", models.DateTimeField(auto_now_add=True)),
                (
                    "job_id",
                    models.CharField(blank=True, editable=False, max_length=200),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="photos",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Thumbnail",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                (
                    "size",
                    models.CharField(
                        choices=[
                            ("small", "Small"),
                            ("medium", "Medium"),
                            ("large", "Large"),
                        ],
                        max_length=10,
                    ),
                ),
                ("image", models.ImageField(upload_to="")),
                ("width", models.PositiveIntegerField()),
                ("height", models.PositiveIntegerField()),
                (
                    "photo",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="thumbnails",
                        to="gallery.photo",
                    ),
                ),
            ],
            options={
                "ordering": ["width"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("photo", "size"), name="one_of_each_size"
                    )
                ],
            },
        ),
    ]
