"""The addresses of sign-up, log-in and log-out."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from members import views

app_name = "members"

urlpatterns = [
    path("sign-up/", views.sign_up, name="sign-up"),
    path(
        "log-in/",
        LoginView.as_view(
            template_name="members/log_in.html", redirect_authenticated_user=True
        ),
        name="log-in",
    ),
    path("log-out/", LogoutView.as_view(), name="log-out"),
]
