"""The addresses around membership."""

from __future__ import annotations

from django.urls import path

from membership import views

app_name = "membership"

urlpatterns = [
    path("", views.membership, name="membership"),
    path("pay/", views.pay, name="pay"),
    path("service/", views.service, name="service"),
    path("service/switch/", views.switch, name="switch"),
]
