"""A job's payload as rows of name and value, secrets masked.

Nothing of a payload that cannot be decoded is shown, because what cannot be
understood cannot be masked either.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from django_nobroker import envelope

from .signatures import parameter_names
from .text import visible

MASK = "********"
ROWS_MAX = 200
VALUE_MAX = 4000  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One row: a name and the value as JSON text, cut if long."""

    name: str
    value: str
    masked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """What a payload holds; ``problem`` says why if it cannot be shown."""

    rows: tuple[Argument, ...] = ()
    left_out: int = 0
    problem: str = ""


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


class Redaction:
    """Decides by its name whether a value is a secret.

    Case and punctuation do not matter and a part is enough: ``api_key`` also hides
    ``X-Api-Key`` and ``stripeApiKey``. Hiding one too many is the harmless error.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(filter(None, map(_plain, names)))

    def hides(self, name: str) -> bool:
        """Tell whether values called ``name`` are to be masked."""
        plain = _plain(name)
        return any(secret in plain for secret in self._names)

    def masked(self, value: object) -> object:
        """Return ``value`` with every secret in it masked, however deep."""
        if isinstance(value, dict):
            return {
                key: MASK if self.hides(key) else self.masked(inner)
                for key, inner in value.items()
            }
        if isinstance(value, list):
            return [self.masked(inner) for inner in value]
        return value

    def argument(self, name: str, value: object) -> Argument:
        """Return the row that shows ``value`` under ``name``."""
        shown = visible(name, 100)
        if self.hides(name):
            return Argument(name=shown, value=MASK, masked=True)
        text = json.dumps(self.masked(value), indent=2, ensure_ascii=False)
        return Argument(name=shown, value=visible(text, VALUE_MAX))


def _named(content: object, kind: str | None) -> list[tuple[str, object]]:
    """Return the values of a payload with their names, arguments of tasks first."""
    if not isinstance(content, dict):
        return [(_("payload"), content)]
    args, kwargs = content.get("args"), content.get("kwargs")
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        return list(content.items())
    names = parameter_names(kind)
    positional = [
        (names[number] if number < len(names) else f"[{number}]", value)
        for number, value in enumerate(args)
    ]
    return [*positional, *kwargs.items()]


def read_arguments(payload: bytes, kind: str | None, redaction: Redaction) -> Arguments:
    """Return the rows for ``payload``; bytes of any sort are accepted."""
    try:
        content = envelope.unwrap(payload)
        if isinstance(content, envelope.Sealed):
            return Arguments(
                problem=_(
                    "The payload (%(count)d bytes) was written by the serializer "
                    "%(name)s of a plain queue."
                )
                % {"count": len(content.data), "name": visible(content.serializer)}
            )
        named = _named(json.loads(content), kind)
        rows = tuple(
            redaction.argument(name, value) for name, value in named[:ROWS_MAX]
        )
    except (ValueError, RecursionError) as error:
        # ValueError: neither UTF-8 nor JSON, or a number of thousands of digits.
        # RecursionError: nested so deep that it can only have been made to be.
        reason = _("nested too deep") if isinstance(error, RecursionError) else error
        return Arguments(
            problem=_("The payload (%(count)d bytes) cannot be decoded: %(reason)s")
            % {"count": len(payload), "reason": visible(str(reason))}
        )
    return Arguments(rows=rows, left_out=max(0, len(named) - ROWS_MAX))
