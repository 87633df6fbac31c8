"""Foreign text made fit for a page: cut to length, nothing invisible in it.

Escaping is the template's part; what that does not see to is ``visible_text``'s.
"""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

from django_nobroker.visible_text import visible

__all__ = ["SENDABLE_MAX", "is_sendable", "visible", "visible_ends"]

# A form or an address does not bring these back as they were sent.
_UNSENDABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")

SENDABLE_MAX = 1000  # characters; ids and names of queues have 200 at most


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
