from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="DeadJob",
            fields=[
                (
                    "id",
                    models.CharField(
                        max_length=200,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
            ],
            options={
                "verbose_name": "dead letter",
                "verbose_name_plural": "dead letters",
                "permissions": (("view_deadjob", "Can view dead letters"),),
                "abstract": False,
                "managed": False,
                "default_permissions": (),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.CharField(
                        max_length=200,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
            ],
            options={
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
                "permissions": (
                    ("view_job", "Can view jobs"),
                    ("requeue_job", "Can requeue jobs"),
                    ("discard_job", "Can discard jobs"),
                    ("view_payload", "Can view arguments and results of jobs"),
                ),
                "abstract": False,
                "managed": False,
                "default_permissions": (),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                (
                    "id",
                    models.CharField(
                        max_length=200,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
            ],
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
                "permissions": (
                    ("view_queue", "Can view queues"),
                    ("pause_queue", "Can pause and resume queues"),
                ),
                "abstract": False,
                "managed": False,
                "default_permissions": (),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Record",
            fields=[
                (
                    "id",
                    models.CharField(
                        max_length=200,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
            ],
            options={
                "verbose_name": "record",
                "verbose_name_plural": "log",
                "permissions": (("view_record", "Can view the log"),),
                "abstract": False,
                "managed": False,
                "default_permissions": (),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                (
                    "id",
                    models.CharField(
                        max_length=200,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "permissions": (("view_worker", "Can view workers"),),
                "abstract": False,
                "managed": False,
                "default_permissions": (),
                "base_manager_name": "objects",
            },
        ),
    ]
