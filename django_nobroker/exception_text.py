"""The texts of an exception: made without failing, capped, possible to encode.

A foreign exception may have no text, a huge one, or one that is no Unicode.
"""

from __future__ import annotations

import traceback

MESSAGE_LIMIT, TRACEBACK_LIMIT = 4_000, 32_000


def message(error: BaseException) -> str:
    """Return what ``str`` says of an exception, at most its first characters."""
    try:
        return encodable(str(error)[:MESSAGE_LIMIT])
    except BaseException:  # noqa: BLE001 - whatever a foreign __str__ raises
        return "<its text could not be made>"


def trace(error: BaseException) -> str:
    """Return the traceback of an exception, at most its last characters."""
    try:
        lines = traceback.format_exception(error)
    except BaseException:  # noqa: BLE001 - the same
        return ""
    return encodable("".join(lines)[-TRACEBACK_LIMIT:])


def encodable(text: str) -> str:
    """Return a text with the halves of surrogate pairs spelt out."""
    return text.encode("utf-8", "backslashreplace").decode()
