"""Foreign text made fit to be shown: cut to length, nothing invisible in it (pure).

Ids, names, messages and payloads come from whoever enqueued or failed. What no page
escapes and no terminal should obey is shown as its code: control characters, lone
surrogates, and marks that reverse the direction of what follows.
"""

from __future__ import annotations

import re

# U+2028 to U+202E and U+2066 to U+2069 break lines or turn the direction of the text
# around, U+FEFF is invisible. Tab and newline are layout and stay.
_RANGES = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff"
)
_INVISIBLE = re.compile(f"[{_RANGES}]")
_INVISIBLE_OR_LAYOUT = re.compile(f"[\t\n{_RANGES}]")
_SPELT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _code(match: re.Match[str]) -> str:
    point = ord(match[0])
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}"


def visible(text: str, limit: int = 200) -> str:
    """Return at most ``limit`` characters of ``text``, the invisible ones as codes."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return _INVISIBLE.sub(_code, text.replace("\r\n", "\n"))


def visible_lines(text: str) -> str:
    """Return all of ``text``, tabs and newlines as they are, the rest as codes."""
    return visible(text, len(text) + 1)


def visible_line(text: str) -> str:
    """Return all of ``text`` in one line: tabs and newlines are codes, too."""
    return _INVISIBLE_OR_LAYOUT.sub(lambda one: _SPELT.get(one[0]) or _code(one), text)


def visible_json(text: str) -> str:
    r"""Return JSON text that says the same with every invisible character as ``\uXXXX``.

    They stand in its strings only, since between its tokens none is allowed.
    """
    return _INVISIBLE.sub(lambda one: f"\\u{ord(one[0]):04x}", text)
