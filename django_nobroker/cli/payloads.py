"""Payloads between the log and the command line, and the option that names a serializer."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from django_nobroker import envelope, payload
from django_nobroker.envelope import Sealed
from django_nobroker.serializers import JsonSerializer, MsgpackSerializer, Serializer

from .refusal import Refusal

_READY: Mapping[str, Callable[[], Serializer[Any]]] = {
    "json": JsonSerializer,
    "msgpack": MsgpackSerializer,
}


def value(text: bytes | None) -> Any:
    """Return a payload as a value; None if it cannot be read.

    What another serializer than JSON made is shown as it stands in the log.
    """
    if text is None:
        return None
    try:
        return payload.loads(_plain(text))
    except (ValueError, RecursionError):
        return None


def shown(text: bytes | None) -> str:
    """Return a payload as text, or why there is none."""
    if text is None:
        return "(its record is damaged)"
    # What only looks like the work of a serializer is shown as it is.
    with suppress(ValueError):
        text = _plain(text)
    return text.decode(errors="backslashreplace")


def _plain(text: bytes) -> bytes:
    content = envelope.unwrap(text)
    return text if isinstance(content, Sealed) else content


def declare_serializer(parser: ArgumentParser) -> None:
    """Declare the option of commands that write or decode payloads."""
    parser.add_argument(
        "--serializer",
        choices=list(_READY),
        default="json",
        help="How the payloads of the queue are written. Default: json.",
    )


def serializer(name: str) -> Serializer[Any]:
    """Return the serializer of that name."""
    try:
        return _READY[name]()
    except ImportError as error:
        raise Refusal(str(error)) from error
