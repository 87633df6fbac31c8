"""The serializers of queues: what one has to offer, and those that come ready made."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, final

from . import exception_text, payload

T = TypeVar("T")

_KEYS = (str, bytes, int, float, type(None))
_MISSING = "MsgpackSerializer needs the package msgpack: pip install 'django-nobroker[msgpack]'."


class Serializer(Protocol[T]):
    """Turns payloads into bytes and back; give one to ``Queue(serializer=...)``.

    Its name is stored with each payload, and only a serializer of that name reads it
    again: the attribute ``name`` if there is one, else the path of its class. Both
    methods are called in many threads. What they raise refuses the payload.
    """

    def dumps(self, value: T, /) -> bytes:
        """Return the bytes of a payload."""

    def loads(self, data: bytes, /) -> T:
        """Return the payload of such bytes."""


@final
class JsonSerializer:
    """JSON, with nothing changed on the way; the serializer of a queue that has no other."""

    name = "json"

    def dumps(self, value: Any, /) -> bytes:
        """Return the JSON text; ``SerializationError`` names what JSON cannot hold."""
        return payload.dumps(value)

    def loads(self, data: bytes, /) -> Any:
        """Return the value of JSON text; raises ``ValueError`` if it is none."""
        return payload.loads(data)


@final
class MsgpackSerializer:
    """MessagePack: JSON's types, and bytes, NaN, and keys that are not strings.

    Integers have 64 bits at most, and a tuple comes back as a list. Raises
    ``ImportError`` when the package ``msgpack`` is not installed.
    """

    name = "msgpack"

    def __init__(self) -> None:
        try:
            import msgpack
        except ImportError as error:
            raise ImportError(_MISSING) from error
        self._pack = msgpack.packb
        self._unpack = msgpack.unpackb

    def dumps(self, value: Any, /) -> bytes:
        """Return the bytes; ``SerializationError`` names what cannot be packed."""
        try:
            data: bytes = self._pack(value)
            # Keys that cannot be keys again are packed without complaint.
            self.loads(data)
        except Exception as error:
            _check(value, "payload", 0)
            reason = exception_text.message(error)
            raise payload.unsupported(value, "payload", reason) from error
        if len(data) > payload.DEPTH:  # shorter ones cannot be nested deeper
            _check(value, "payload", 0)
        return data

    def loads(self, data: bytes, /) -> Any:
        """Return the value of such bytes; raises ``ValueError`` or ``TypeError``."""
        return self._unpack(data, strict_map_key=False)


def _check(value: object, path: str, depth: int) -> None:
    """Raise with the path of the first value that MessagePack cannot hold."""
    if depth > payload.DEPTH:
        raise payload.too_deep(path)
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, _KEYS):
                raise payload.unsupported(value, path, f"{key!r:.60} cannot be a key")
            _check(key, path, depth + 1)
            _check(item, f"{path}[{key!r}]", depth + 1)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            _check(item, f"{path}[{number}]", depth + 1)
    elif isinstance(value, str):
        payload.check_text(value, path)
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise payload.unsupported(value, path, "the number is longer than 64 bits")
    elif not isinstance(value, float | bytes | bytearray | memoryview | None):
        _check_other(value, path)


def _check_other(value: object, path: str) -> None:
    import msgpack

    if not isinstance(value, msgpack.Timestamp | msgpack.ExtType):
        raise payload.unsupported(value, path, "MessagePack has no word for it")
