"""The payloads of one queue as text for the log and back, by the queue's serializer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, cast

from django_nobroker import envelope, exception_text, limits, payload
from django_nobroker.engine.errors import SerializationError
from django_nobroker.envelope import Sealed
from django_nobroker.serializers import JsonSerializer, Serializer

from .job import T


@dataclass(frozen=True, slots=True, repr=False)
class Undecodable:
    """Stands for a payload that cannot be had, and says why.

    ``data`` are the bytes that could not be decoded: JSON text, or what the serializer
    made. None: nothing is left of them.
    """

    data: bytes | None
    error: str

    def __repr__(self) -> str:
        """Show how many bytes there are, and what is wrong."""
        size = "no" if self.data is None else len(self.data)
        return f"<Undecodable: {size} bytes, {self.error}>"


class Coding(Protocol[T]):
    """From payloads to text and back."""

    def encode(self, value: T) -> tuple[bytes, T]:
        """Return the text of a payload, and what reading it gives back."""

    def encode_all(self, values: Sequence[T]) -> tuple[list[bytes], list[T]]:
        """Return the same of many; an error names the one."""

    def decode(self, text: bytes) -> T | Undecodable:
        """Return the payload of a text; never raises what a serializer raises."""


def coding(serializer: Serializer[T] | None) -> Coding[T]:
    """Return how a queue of that serializer, None for JSON, writes and reads."""
    if serializer is None or isinstance(serializer, JsonSerializer):
        return cast("Coding[T]", JsonCoding())
    return SealedCoding(serializer)


class JsonCoding:
    """JSON, as text that anybody can read in the log."""

    def encode(self, value: Any) -> tuple[bytes, Any]:
        """See :class:`Coding`."""
        text, back = payload.encode(value)
        return envelope.guard(text), back

    def encode_all(self, values: Sequence[Any]) -> tuple[list[bytes], list[Any]]:
        """See :class:`Coding`."""
        texts, back = payload.encode_all(values)
        return list(map(envelope.guard, texts)), back

    def decode(self, text: bytes) -> Any | Undecodable:
        """See :class:`Coding`."""
        content = _unwrapped(text)
        if isinstance(content, Undecodable):
            return content
        if isinstance(content, Sealed):
            return _foreign(content, JsonSerializer.name)
        try:
            return payload.loads(content)
        except ValueError as error:
            return Undecodable(text, f"it is not JSON: {exception_text.message(error)}")


class SealedCoding(Generic[T]):
    """The bytes of another serializer, sealed with its name."""

    def __init__(self, serializer: Serializer[T]) -> None:
        for method in ("dumps", "loads"):
            limits.function(
                getattr(serializer, method, None), f"serializer's {method}()"
            )
        kind = type(serializer)
        name = getattr(serializer, "name", f"{kind.__module__}.{kind.__qualname__}")
        self._name = limits.name(name, "the serializer's name")
        if name == JsonSerializer.name:
            raise ValueError(f"The serializer's name must not be {name!r}: JSON's is.")
        self._serializer = serializer

    def encode(self, value: T) -> tuple[bytes, T]:
        """See :class:`Coding`."""
        try:
            data = bytes(memoryview(self._serializer.dumps(value)))
            back = self._serializer.loads(data)
        except SerializationError:
            raise
        except Exception as error:
            reason = f"{self._name} refuses it: {exception_text.message(error)}"
            raise payload.unsupported(value, "payload", reason) from error
        text = envelope.seal(Sealed(self._name, data))
        if len(text) > payload.LIMIT:
            raise payload.too_long("payload", len(text))
        return text, back

    def encode_all(self, values: Sequence[T]) -> tuple[list[bytes], list[T]]:
        """See :class:`Coding`."""
        texts: list[bytes] = []
        back: list[T] = []
        for number, value in enumerate(values):
            try:
                text, read = self.encode(value)
            except SerializationError as error:
                msg = f"{error} It is that of payloads[{number}]."
                raise SerializationError(msg) from error
            texts.append(text)
            back.append(read)
        return texts, back

    def decode(self, text: bytes) -> T | Undecodable:
        """See :class:`Coding`."""
        content = _unwrapped(text)
        if isinstance(content, Undecodable):
            return content
        if not isinstance(content, Sealed):
            return _foreign(Sealed(JsonSerializer.name, content), self._name)
        if content.serializer != self._name:
            return _foreign(content, self._name)
        try:
            return self._serializer.loads(content.data)
        except Exception as error:  # noqa: BLE001 - whatever it is, these bytes are no payload
            message = exception_text.message(error)
            return Undecodable(
                content.data,
                f"{self._name} cannot read it: {type(error).__name__}: {message}",
            )


def _unwrapped(text: bytes) -> bytes | Sealed | Undecodable:
    try:
        return envelope.unwrap(text)
    except ValueError as error:
        return Undecodable(text, str(error))


def _foreign(content: Sealed, name: str) -> Undecodable:
    return Undecodable(
        content.data,
        f"it was written by the serializer {content.serializer}, "
        f"and this queue reads {name}",
    )
