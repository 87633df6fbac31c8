"""Signing up; logging in and out are Django's own views."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from members.forms import SignUpForm
from members.tasks import send_welcome_mail

WELCOME_JOB = "welcome_job"  # where the session keeps the id of the job


@require_http_methods(["GET", "POST"])
def sign_up(request: HttpRequest) -> HttpResponse:
    """Make a member; the mail is sent by a worker, so nobody waits for it."""
    form = SignUpForm(request.POST or None)
    if not form.is_valid():
        return render(request, "members/sign_up.html", {"form": form})
    user = form.save()
    login(request, user)
    result = send_welcome_mail.enqueue(user.pk)
    request.session[WELCOME_JOB] = result.id
    messages.success(request, f"Welcome, {user.get_username()}! A mail is on its way.")
    return redirect("home")
