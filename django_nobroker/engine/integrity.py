"""Is the log what it was when it was written? Looking only; findings are data.

Quick looks at how the segments hang together and where the log ends. Full also
reads every record: checksum, place, and whether it fits what happened to its job
before, by the same replay that builds the index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from . import framing, segment
from .control import LAST, SEGMENT
from .errors import CorruptLogError, StorageError
from .index import Index
from .locks import Maintenance
from .replica import Progress, applied, grow, replica, unwatched
from .scan import CheckedChanges, Finding, Scan
from .store import Store

FULL, QUICK = "full", "quick"
MODES = (FULL, QUICK)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityReport:
    """What a check found; ``ok`` is whether ``errors`` is empty.

    ``notes`` are no errors: an unfinished end that the next writer cuts off, ranges
    that were never acknowledged, operations of a newer version. ``more`` errors were
    found that are not listed.
    """

    ok: bool
    mode: str
    errors: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    more: int
    records: int  # whole records that were looked at
    segments: int
    start: int
    end: int
    seconds: float

    def to_dict(self) -> dict[str, object]:
        """Return plain values, as JSON has them."""
        plain: dict[str, object] = msgspec.json.decode(msgspec.json.encode(self))
        return plain


def check(
    store: Store,
    *,
    mode: str = FULL,
    max_errors: int = 100,
    progress: Progress = unwatched,
) -> IntegrityReport:
    """Look at the log of a store; up to ``max_errors`` errors are listed.

    Writers go on meanwhile: what they add after the beginning is not looked at.
    """
    began = store.clock.monotonic()
    with Maintenance(store.directory, store.vfs, store.clock).shared():
        end = store.end
        scan = begin(store, end, mode)
        if mode == FULL:
            with replica(store) as index:
                read_everything(store, index, scan, end, progress)
        else:
            scan.findings += known_damage(store, scan)
    return report(store, scan, mode=mode, max_errors=max_errors, end=end, began=began)


def begin(store: Store, end: int, mode: str) -> Scan:
    """Return a scan with what needs no reading of every record."""
    found = chain(store, end)
    if mode == FULL:
        # Reading everything tells damage with its true extent, and whose it was.
        found = (one for one in found if one.kind != "damage")
    return Scan(findings=list(found), notes=list(loose_ends(store, end)))


def report(
    store: Store, scan: Scan, *, mode: str, max_errors: int, end: int, began: float
) -> IntegrityReport:
    """Return what a scan has found so far."""
    errors, notes = scan.settled()
    return IntegrityReport(
        ok=not errors,
        mode=mode,
        errors=tuple(errors[:max_errors]),
        notes=tuple(notes[:max_errors]),
        more=max(0, len(errors) - max_errors),
        records=scan.records,
        segments=len(store.log.segments_between(store.log.first, end)),
        start=store.log.first,
        end=end,
        seconds=store.clock.monotonic() - began,
    )


def read_everything(
    store: Store, index: Index, scan: Scan, end: int, progress: Progress
) -> None:
    """Replay the log up to ``end`` into an empty index, looking at every record."""
    try:
        grow(
            index,
            end,
            lambda txn: CheckedChanges(txn, store, scan),
            progress=progress,
        )
    except (StorageError, CorruptLogError) as error:
        reached = applied(index)
        text = f"the log cannot be read any further: {error}"
        scan.findings.append(
            Finding(kind="unreadable", start=reached, end=end, text=text)
        )


# --- what needs no reading of every record --------------------------------------------


def chain(store: Store, end: int) -> Iterator[Finding]:
    """Yield what is wrong with the segments: each names the one before and its end."""
    log, vfs = store.log, store.vfs
    log.refresh()
    sizes = [one for one in segment.sizes(store.directory, vfs) if one[0] < end]
    identity = ""
    before: tuple[int, int] | None = None
    for base, size in sizes:
        name = segment.file_name(base)
        stop = min(base + size, end)
        try:
            start = segment.read_start(store.directory, base, vfs)
        except (OSError, CorruptLogError) as error:
            yield Finding(kind="segment", start=base, end=stop, text=str(error))
            start = None
        else:
            if start is None:
                text = f"{name} does not begin with a whole record"
                yield Finding(kind="damage", start=base, end=stop, text=text)
        if start is not None:
            if identity and start.store != identity:
                text = f"{name} belongs to another store"
                yield Finding(kind="segment", start=base, end=stop, text=text)
            identity = identity or start.store
            if before is not None:
                yield from _link(
                    store, before, base, start.prev, (start.last, start.sum)
                )
        if before is not None and before[0] + before[1] > base:
            text = f"{segment.file_name(before[0])} reaches into the segment after it"
            yield Finding(kind="segment", start=base, end=sum(before), text=text)
        before = base, size
    if before is None or sum(before) < end:
        reached = 0 if before is None else sum(before)
        text = "the log ends before what was written"
        yield Finding(kind="segment", start=reached, end=end, text=text)
    yield from _last_record(store, end)


def _link(
    store: Store, before: tuple[int, int], base: int, prev: int, last: tuple[int, str]
) -> Iterator[Finding]:
    name = segment.file_name(base)
    if prev != before[0]:
        text = f"{segment.file_name(prev)}, the segment before {name}, is missing"
        yield Finding(kind="segment", start=prev, end=base, text=text)
    elif last[1] and last[0] >= store.log.first:
        try:
            found = store.log.record_at(last[0])
        except (StorageError, CorruptLogError) as error:
            yield Finding(kind="unreadable", start=last[0], end=base, text=str(error))
            return
        if found is not None and framing.checksum(found[1]) != last[1]:
            text = f"the last record before {name} is another one than it names"
            yield Finding(kind="segment", start=last[0], end=base, text=text)


def _last_record(store: Store, end: int) -> Iterator[Finding]:
    control = store.control
    if control is None or control.words[SEGMENT] >= end:
        return
    last = control.words[LAST]
    if last >= end:
        return  # somebody has gone on meanwhile
    try:
        found = store.log.record_at(last)
    except (StorageError, CorruptLogError) as error:
        yield Finding(kind="unreadable", start=last, end=end, text=str(error))
        return
    if found is None:
        text = "the last record is damaged"
        yield Finding(kind="damage", start=last, end=end, text=text)


def loose_ends(store: Store, end: int) -> Iterator[Finding]:
    """Yield what stands behind the end and was never acknowledged."""
    if store.torn:
        text = "an unfinished end; the next process that writes cuts it off and keeps a copy"
        yield Finding(kind="torn", start=end, end=end + store.torn, text=text)


def known_damage(store: Store, scan: Scan) -> Iterator[Finding]:
    """Yield the damage that the index met when it followed the log."""
    known = {one.start for one in scan.findings}
    for start, stop in store.look(lambda tables: tables.meta.damage):
        if start not in known:
            text = "no whole record; found when the index followed the log"
            yield Finding(kind="damage", start=start, end=stop, text=text)
