"""Foreign text made fit for a page: cut to length, nothing invisible in it.

Ids, names, messages and tracebacks come from whoever enqueued or failed. Escaping
is the template's part; this module sees to what escaping does not: lone surrogates
that no response can encode, NUL and control characters, and marks that reverse the
direction of what follows. All of them are shown as their code.
"""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

# Tab and newline are layout and stay. U+2028 to U+202E and U+2066 to U+2069 break
# lines or turn the direction of the text around, U+FEFF is invisible.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff]"
)
# A form or an address does not bring these back as they were sent.
_UNSENDABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")

SENDABLE_MAX = 1000  # characters; ids and names of queues have 200 at most


def _code(match: re.Match[str]) -> str:
    point = ord(match[0])
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}"


def visible(text: str, limit: int = 200) -> str:
    """Return at most ``limit`` characters of ``text``, the invisible ones as codes."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return _INVISIBLE.sub(_code, text.replace("\r\n", "\n"))


def visible_ends(text: str, limit: int) -> str:
    """Return ``text`` like :func:`visible`, but cut in the middle.

    A traceback says at its end what happened and at its start where it came from.
    """
    if len(text) <= limit:
        return visible(text, limit)
    head, tail = limit // 4, limit - limit // 4
    gap = _("[%(count)d characters are not shown]") % {"count": len(text) - limit}
    return f"{visible(text[:head], head)}\n\n{gap}\n\n{visible(text[-tail:], tail)}"


def is_sendable(text: str) -> bool:
    """Tell whether ``text`` survives a form field and an address unchanged."""
    return 0 < len(text) <= SENDABLE_MAX and _UNSENDABLE.search(text) is None
