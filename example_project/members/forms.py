"""The form with which somebody becomes a member."""

# mypy: disable-error-code="type-arg"
# Django's classes take type arguments in its stubs only.

from __future__ import annotations

from django import forms
from django.contrib.auth.forms import UserCreationForm


class SignUpForm(UserCreationForm):
    """Django's own form, and the address for the welcome mail."""

    email = forms.EmailField(
        label="E-mail address",
        help_text="Your welcome goes there. No mail leaves this machine.",
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )

    class Meta(UserCreationForm.Meta):
        """The fields, in the order of the page."""

        fields = ("username", "email")
