"""Payloads between Python and JSON text: strict both ways.

What is read back equals what was given, or nothing is written. A value that
JSON would change in silence (keys that are no strings, NaN, dates, bytes, sets)
is refused with its path; a tuple comes back as a list, as everywhere in JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec

from .engine.errors import SerializationError

#: The longest JSON text that is accepted, in bytes.
LIMIT = 8 * 1024 * 1024
#: How deep lists and dicts may nest; deeper ones could not be read back everywhere.
DEPTH = 200
#: Integers beyond this many digits are refused by Python's own JSON reader.
_DIGITS = 4000

# What the fast encoder raises for what it cannot do.
_REFUSALS = (
    TypeError,
    ValueError,
    OverflowError,
    RecursionError,
    msgspec.MsgspecError,
)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
#: Too short to be too long or too deep: each level takes two characters.
_SHORT = 2 * DEPTH


def dumps(value: object, path: str = "payload") -> bytes:
    """Return the JSON text of a value.

    Raises ``SerializationError`` naming the path of what cannot make the round
    trip, such as ``payload['when']``, or of a text over 8 MiB.
    """
    return encode(value, path)[0]


def encode(value: object, path: str = "payload") -> tuple[bytes, Any]:
    """Return the JSON text of a value and what reading it gives back."""
    try:
        text = _encode(value)
        back = _decode(text)
        # Equal means that nothing was changed; a tuple and whatever JSON has no
        # word for compare unequal, and are looked at one by one.
        if back == value:
            if len(text) <= _SHORT:
                return text, back
            if text.count(b"[") + text.count(b"{") > DEPTH:
                text, back = _carefully(value, path)
        else:
            text, back = _carefully(value, path)
    except _REFUSALS as error:
        if isinstance(error, SerializationError):
            raise
        text, back = _carefully(value, path)
    if len(text) > LIMIT:
        raise too_long(path, len(text))
    return text, back


def encode_all(values: Sequence[object]) -> tuple[list[bytes], list[Any]]:
    """Return the JSON texts of many values, and what reading them gives back.

    An error names the value by its index, such as ``payloads[3]['when']``.
    """
    try:
        texts = list(map(_encode, values))
        back = list(map(_decode, texts))
        if back == values and max(map(len, texts), default=0) <= _SHORT:
            return texts, back
    except _REFUSALS:
        pass
    pairs = [encode(value, f"payloads[{i}]") for i, value in enumerate(values)]
    return [text for text, _ in pairs], [value for _, value in pairs]


def loads(text: bytes) -> Any:
    """Return the value of a JSON text; raises ``ValueError`` if it is none."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        # Integers over 64 bits are beyond the fast reader of some versions.
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("it is nested too deep to be read") from error


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _carefully(value: object, path: str) -> tuple[bytes, Any]:
    plain = _plain(value, path, 0)
    try:
        text = json.dumps(
            plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        return text.encode(), plain
    except (ValueError, RecursionError) as error:
        msg = f"Unsupported type: {path} cannot be written as JSON ({error})."
        raise SerializationError(msg) from error


def _plain(value: object, path: str, depth: int) -> Any:
    """Return a value of plain JSON types, or raise with the path of what is none."""
    if depth > DEPTH:
        raise too_deep(path)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        check_text(value, path)
        return str(value)
    if isinstance(value, int):
        return _integer(value, path)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        raise unsupported(value, path, f"{value} is not a JSON number")
    if isinstance(value, list | tuple):
        return [_plain(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    if isinstance(value, dict):
        plain = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise unsupported(value, path, f"the key {key!r:.60} is not a string")
            check_text(key, path)
            plain[str(key)] = _plain(item, f"{path}[{key!r}]", depth + 1)
        return plain
    raise unsupported(value, path, "only what JSON knows can be stored")


def check_text(value: str, path: str) -> None:
    """Raise ``SerializationError`` for a string that is no Unicode text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise unsupported(value, path, "it holds half of a surrogate pair") from None


def _integer(value: int, path: str) -> int:
    if abs(value).bit_length() > _DIGITS * 3:
        raise unsupported(value, path, "the number is too long")
    return int(value)


def unsupported(value: object, path: str, why: str) -> SerializationError:
    """Return the error of a value that cannot be stored, with its path."""
    return SerializationError(
        f"Unsupported type {type(value).__name__} at {path}: {why}."
    )


def too_deep(path: str) -> SerializationError:
    """Return the error of lists and dicts that nest too deep."""
    return SerializationError(
        f"Unsupported type or depth: {path} is nested more than {DEPTH} deep."
    )


def too_long(path: str, size: int) -> SerializationError:
    """Return the error of a payload that takes ``size`` bytes of JSON text."""
    return SerializationError(
        f"Unsupported type or size: {path} is {size} bytes of JSON; "
        f"the limit is {LIMIT}."
    )
