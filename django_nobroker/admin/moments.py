"""Times and spans as pages show them; seconds since the epoch come in."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from django.conf import settings
from django.utils.formats import number_format
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

_MINUTE = 60


def moment(seconds: float | None) -> datetime | None:
    """Return the time to hand to a template, or None if no calendar holds it.

    It is aware if the project uses time zones, else naive local time.
    """
    if seconds is None:
        return None
    try:
        if settings.USE_TZ:
            return datetime.fromtimestamp(seconds, tz=UTC)
        # The project asked for naive local times.
        return datetime.fromtimestamp(seconds)  # noqa: DTZ006
    except (OverflowError, ValueError, OSError):
        return None


def span(seconds: float | None) -> str:
    """Return a length of time in words: "12 seconds", "3 hours, 5 minutes".

    A clock that was set back makes a negative span; that is shown as none at all.
    """
    if seconds is None or not math.isfinite(seconds):
        return ""
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return ngettext("%(count)d second", "%(count)d seconds", whole) % {
            "count": whole
        }
    now = datetime.now(tz=UTC)
    start = moment(now.timestamp() - whole)
    if start is None:
        return _("very long")
    return str(timesince(start, now if settings.USE_TZ else now.replace(tzinfo=None)))


def duration(start: float, end: float | None) -> str:
    """Return how long something ran, to the tenth of a second when short."""
    if end is None or not math.isfinite(end - start):
        return ""
    seconds = max(0.0, end - start)
    if seconds < _MINUTE:
        return _("%(count)s s") % {"count": number_format(seconds, 1)}
    return span(seconds)
