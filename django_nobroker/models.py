"""The entries of the admin's menu and the permissions that guard them.

No table stands behind these models: the pages read the log. They are unmanaged,
so ``migrate`` makes the rows of their permissions and nothing else, and a queue
runs without it. ``Queue``, ``Job`` and ``Worker`` here are not the classes of the
same names that the package exports; they are only ever imported from this module.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class NoRows(models.Manager[models.Model]):
    """A manager that finds nothing and never asks the database.

    Code that walks over all models (``dumpdata`` does) would otherwise fail on a
    table that does not exist.
    """

    def get_queryset(self) -> models.QuerySet[models.Model]:
        """Return the empty set."""
        return super().get_queryset().none()


class Entry(models.Model):
    """What the entries share: an id in the log, no row anywhere else."""

    id = models.CharField(_("id"), max_length=200, primary_key=True)

    objects: ClassVar[NoRows] = NoRows()

    class Meta:
        """No table, and none of the permissions that need one."""

        abstract = True
        managed = False
        app_label = "django_nobroker"
        default_permissions = ()
        # dumpdata --all and foreign keys go through the base manager.
        base_manager_name = "objects"

    def __str__(self) -> str:
        return str(self.id)


class Queue(Entry):
    """The page of queues and their figures."""

    class Meta(Entry.Meta):
        """Who may look, who may pause."""

        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        permissions = (
            ("view_queue", "Can view queues"),
            ("pause_queue", "Can pause and resume queues"),
        )


class Job(Entry):
    """Any job; the permissions to act on one are here, whichever page offers them."""

    class Meta(Entry.Meta):
        """Who may look, who may act, who may read the arguments."""

        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        permissions = (
            ("view_job", "Can view jobs"),
            ("requeue_job", "Can requeue jobs"),
            ("discard_job", "Can discard jobs"),
            ("view_payload", "Can view arguments and results of jobs"),
        )


class DeadJob(Entry):
    """The pages of dead letters."""

    class Meta(Entry.Meta):
        """Who may look."""

        verbose_name = _("dead letter")
        verbose_name_plural = _("dead letters")
        permissions = (("view_deadjob", "Can view dead letters"),)


class Worker(Entry):
    """The page of workers that are alive."""

    class Meta(Entry.Meta):
        """Who may look."""

        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        permissions = (("view_worker", "Can view workers"),)


class Record(Entry):
    """The page of the raw log."""

    class Meta(Entry.Meta):
        """Who may look."""

        verbose_name = _("record")
        verbose_name_plural = _("log")
        permissions = (("view_record", "Can view the log"),)
