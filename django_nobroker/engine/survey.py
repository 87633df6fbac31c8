"""The state of the log as its bytes tell it; looking only, nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass

from . import framing, replay, segment
from .control import ControlPage
from .errors import CorruptLogError
from .framing import Damage, Decoded
from .log import Log
from .record import Drop, Open, SegmentStart, Unknown
from .replay import Whole
from .vfs import Vfs


@dataclass(slots=True, kw_only=True)
class Survey:
    """The state of the log as its bytes tell it, nothing changed."""

    start: int = 0  # where the reading began
    end: int = 0  # after the last whole transaction
    size_end: int = 0  # after the last byte
    segment: int = 0
    records: int = 0
    durable: int = -1  # the highest position that a record knew as durable
    store: str = ""
    epoch: int = 0
    boot: str = ""
    generation: int = 0
    last: int = -1
    low: int = 0  # nothing before this is needed; segments there are left over
    damage: list[Damage]
    unknown: list[str]
    torn_segment: bool = False  # the newest segment holds nothing whole


def survey(log: Log, directory: str, vfs: Vfs) -> Survey:
    """Read the part of the log that may not be durable, and what precedes it.

    Raises ``CorruptLogError`` for a foreign or newer log or a missing segment.
    """
    bases = log.refresh()
    starts = [segment.read_start(directory, base, vfs) for base in bases]
    index = len(bases) - 1
    # The newest one may be torn; then the one before tells a little less.
    known = max((start.d for start in starts if start is not None), default=-1)
    while index > 0 and bases[index] > known:
        index -= 1
    size_end = bases[-1] + _size(directory, bases[-1], vfs)
    found = _read_from(index, starts, bases, size_end, log)
    if bases[0] > found.low and index > 0:
        # A segment that was begun just when segments were dropped does not tell;
        # the drop itself is farther back.
        found = _read_from(0, starts, bases, size_end, log)
    _refuse_gaps(bases, starts, found.low)
    found.torn_segment = found.end <= bases[-1] and len(bases) > 1
    if found.records == 0:
        msg = f"{directory} holds no job log: no record in it is readable. Nothing was changed."
        raise CorruptLogError(msg)
    return found


def refuse_foreign(log: Log, directory: str, vfs: Vfs) -> None:
    """Raise ``CorruptLogError`` for a log of others before anything is made beside it.

    A directory with a control page is a store; what is wrong with it is told later.
    """
    page = ControlPage.open_to_read(directory, vfs)
    if page is not None:
        page.close()
    elif log.refresh() and not segment.is_unborn(directory, vfs):
        survey(log, directory, vfs)


def _refuse_gaps(bases: list[int], starts: list[SegmentStart | None], low: int) -> None:
    """Raise ``CorruptLogError`` unless all segments from ``low`` on are there.

    Those before were to be removed, in whatever order a power cut let it happen.
    """
    if bases[0] > low:
        msg = (
            f"The first segment {segment.file_name(low)} is missing; "
            "nothing was changed."
        )
        raise CorruptLogError(msg)
    for before, base, start in zip(bases, bases[1:], starts[1:], strict=False):
        if base > low and start is not None and start.prev != before:
            msg = (
                f"The segment {segment.file_name(start.prev)} is missing, before "
                f"{segment.file_name(base)}. "
                f"Restore the file from a copy; nothing was changed."
            )
            raise CorruptLogError(msg)


def _read_from(
    index: int,
    starts: list[SegmentStart | None],
    bases: list[int],
    size_end: int,
    log: Log,
) -> Survey:
    found = Survey(damage=[], unknown=[])
    for start in starts[: index + 1]:
        if start is not None:
            _take_start(found, start)
    found.start = found.end = bases[index]
    found.segment = bases[-1]
    found.size_end = size_end
    _read(log, found)
    return found


def _size(directory: str, base: int, vfs: Vfs) -> int:
    fd = segment.open_to_read(directory, base, vfs)
    try:
        return vfs.fstat(fd).st_size
    finally:
        vfs.close(fd)


def _take_start(found: Survey, start: SegmentStart) -> None:
    found.low = max(found.low, start.low)
    found.store, found.epoch = start.store, start.epoch
    found.boot, found.generation = start.boot, start.generation


def _read(log: Log, found: Survey) -> None:
    position, size = found.start, framing.STRETCH
    holes: list[tuple[int, int]] = []
    while position < found.size_end:
        decoded = log.decode(position, found.size_end, size)
        whole = replay.whole_transactions(
            decoded, lambda place: log.was_acknowledged(place, found.size_end)
        )
        if whole.end == position and size < found.size_end - position:
            size *= 2
            continue
        for one in whole.records:
            found.durable = max(found.durable, one.d)
            if isinstance(one, SegmentStart):
                _take_start(found, one)
            elif isinstance(one, Open):
                if one.boot != found.boot:
                    found.boot, found.generation = one.boot, one.epoch
                found.epoch = one.epoch
                holes += one.holes
            elif isinstance(one, Drop):
                found.low = max(found.low, one.before)
            elif isinstance(one, Unknown):
                found.unknown.append(one.op)
        found.records += len(whole.records)
        found.damage += decoded.damage
        found.damage += _dropped(decoded, whole)
        if whole.records:
            last = whole.records[-1]
            found.last = last.at
            found.end = last.at + whole.sizes[-1]
        if whole.end == position:
            break
        position, size = whole.end, framing.STRETCH
    # Damage with nothing whole behind it is the unfinished end; holes that an
    # earlier recovery listed are told once.
    found.damage = [
        one
        for one in _merged([d for d in found.damage if d.start < found.end])
        if one.end > found.low
        and not any(first <= one.start and one.end <= last for first, last in holes)
    ]


def _dropped(decoded: Decoded, whole: Whole) -> list[Damage]:
    """Return where whole records stand whose transaction does not count."""
    kept = {one.at for one in whole.records}
    return [
        Damage(one.at, one.at + size)
        for one, size in zip(decoded.records, decoded.sizes, strict=True)
        if one.at < whole.end and one.at not in kept
    ]


def _merged(damage: list[Damage]) -> list[Damage]:
    merged: list[Damage] = []
    for one in sorted(damage):
        if merged and one.start <= merged[-1].end:
            merged[-1] = Damage(merged[-1].start, max(merged[-1].end, one.end))
        else:
            merged.append(one)
    return merged
