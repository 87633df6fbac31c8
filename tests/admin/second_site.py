"""URLs with further admin sites, beside the default one."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from django_nobroker.admin import DeadJobAdmin, QueueAdmin
from django_nobroker.models import DeadJob, Queue

ops = admin.AdminSite(name="ops")
ops.register(Queue, QueueAdmin)
ops.register(DeadJob, DeadJobAdmin)

figures = admin.AdminSite(name="figures")
figures.register(Queue, QueueAdmin)

urlpatterns = [
    path("admin/", admin.site.urls),
    path("ops/", ops.urls),
    path("figures/", figures.urls),
]
