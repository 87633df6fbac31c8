"""The one error that ends the demo."""

from __future__ import annotations


class DemoError(Exception):
    """Something did not turn out as the demo promises; the text says what."""


def expect(holds: object, reason: str) -> None:
    """End the demo with a reason unless something holds."""
    if not holds:
        raise DemoError(reason)
