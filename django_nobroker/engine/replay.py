"""Whole transactions out of a stretch of the log (pure).

One replay serves catching up, rebuilding and verifying: this module decides
which of the decoded records count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .framing import Decoded
from .record import AnyRecord, Unknown


class Whole(NamedTuple):
    """The records that count, with their sizes, and where the next stretch begins."""

    records: Sequence[AnyRecord | Unknown]
    sizes: Sequence[int]
    end: int


def whole_transactions(decoded: Decoded, acknowledged: Callable[[int], bool]) -> Whole:
    """Leave out what is not whole.

    A transaction whose rest does not follow yet is left for the next stretch. One
    with a damaged record is dropped whole if it was never acknowledged (nobody was
    promised any of it); otherwise the damage costs that record only.
    ``acknowledged(position)`` tells whether a position was known durable later on.
    """
    if not decoded.damage:
        records, sizes = decoded.records, decoded.sizes
        # Nothing is missing in between, so only the last one can be unfinished.
        seen = records[-1].of - records[-1].left if records and records[-1].left else 0
        if not seen:
            return Whole(records, sizes, decoded.end)
        if seen <= len(records):
            return Whole(records[:-seen], sizes[:-seen], records[-seen].at)
    return _around_damage(decoded, acknowledged)


def _around_damage(decoded: Decoded, acknowledged: Callable[[int], bool]) -> Whole:
    records, sizes = decoded.records, decoded.sizes
    kept: list[AnyRecord | Unknown] = []
    kept_sizes: list[int] = []
    group: list[int] = []  # indexes of the members seen so far

    def settle(*, complete: bool) -> None:
        if group and (complete or acknowledged(records[group[0]].at)):
            kept.extend(records[index] for index in group)
            kept_sizes.extend(sizes[index] for index in group)
        group.clear()

    for index, record in enumerate(records):
        if group:
            before = records[group[-1]]
            if (
                record.of != before.of
                or record.left != before.left - 1
                or record.at != before.at + sizes[group[-1]]
            ):
                settle(complete=False)
        if not record.of:
            kept.append(record)
            kept_sizes.append(sizes[index])
            continue
        group.append(index)
        if record.left == 0:
            settle(complete=len(group) == record.of)
    end = decoded.end
    if group:
        last = records[group[-1]]
        if last.at + sizes[group[-1]] == end:
            end = records[group[0]].at  # its rest is in the next stretch
            if len(group) != last.of - last.left:
                # Its beginning was damaged: it will not become whole by waiting.
                settle(complete=False)
                end = decoded.end
        else:
            settle(complete=False)
    return Whole(kept, kept_sizes, end)
