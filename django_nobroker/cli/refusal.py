"""The error of a command that cannot do what it was asked, in one line."""

from __future__ import annotations


class Refusal(Exception):  # noqa: N818 - it says what it is
    """Printed as it is; the exit code is 1."""
