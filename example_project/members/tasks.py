"""The mail that welcomes a new member."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django_nobroker import task


@task(queue_name="emails", max_attempts=5, backoff={"base": 1.0}, retry_on=(OSError,))
def send_welcome_mail(user_id: int) -> str:
    """Send a new member their welcome, and return the address.

    Mail servers are away at times: then it is tried again. Anything else, as a
    member who is gone, is not mended by trying.
    """
    user = get_user_model().objects.get(pk=user_id)
    message = EmailMessage(
        subject=f"Welcome to the Lantern Photo Club, {user.get_username()}",
        body=render_to_string("members/welcome.txt", {"user": user}),
        to=[user.email],
        # A job may run twice, if a worker dies after sending. The same id tells
        # the reader's mail program that it has this one already.
        headers={"Message-ID": f"<welcome-{user.pk}@lantern.example>"},
    )
    message.send()
    return str(user.email)
