"""How payloads that are not JSON stand in the log: bytes in a tagged object (pure).

A record holds JSON text. The bytes of another serializer stand in it as
``{"$bytes":"<base64>","serializer":"<name>"}``; text that begins like that and is
a payload all the same stands in ``{"$json":...}``, so neither is taken for the other.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import NamedTuple

import msgspec

_SEAL = b'{"$bytes":'
_GUARD = b'{"$json":'


class Sealed(NamedTuple):
    """The bytes that a serializer made, and its name."""

    serializer: str
    data: bytes


class _Tagged(msgspec.Struct, forbid_unknown_fields=True):
    data: str = msgspec.field(name="$bytes")
    serializer: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Tagged).decode


def seal(sealed: Sealed) -> bytes:
    """Return the JSON text that holds the bytes of a serializer."""
    return _encode(_Tagged(b64encode(sealed.data).decode(), sealed.serializer))


def guard(text: bytes) -> bytes:
    """Return JSON text such that it is not taken for anything else when it is read."""
    if text.startswith((_SEAL, _GUARD)):
        return _GUARD + text + b"}"
    return text


def unwrap(text: bytes) -> bytes | Sealed:
    """Return what was sealed, or the JSON text that was guarded or needed no guard.

    Raises ``ValueError`` if it looks sealed and is not.
    """
    if text.startswith(_GUARD):
        return text[len(_GUARD) : -1]
    if not text.startswith(_SEAL):
        return text
    try:
        tagged = _decode(text)
        data = tagged.data.encode()
        return Sealed(tagged.serializer, b64decode(data, validate=True))
    except (msgspec.MsgspecError, ValueError) as error:
        raise ValueError(f"the tagged bytes are damaged: {error}") from error
