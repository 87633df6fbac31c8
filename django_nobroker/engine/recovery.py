"""What an opening finds on the disk, and what it mends.

Recovery never throws away a whole record. It tells three kinds of damage apart,
by the position ``d`` that each record knew as durable when it was written:

R1  Damage before a known durable position was acknowledged once: that record is
    lost, it is reported with its range, and everything around it stays.
R2  Damage behind every known durable position, with whole records after it, was
    never acknowledged (a power cut writes pages in any order). The records after
    it stay; the ``open`` record lists the range, so it is not reported again.
R3  What is behind the last whole transaction was never acknowledged either. It is
    cut off, after a copy was put into ``set-aside``.

A new epoch begins with each recovery and is durable before anything else is
written, so no fencing token is ever given out twice.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass

from . import framing, record, segment, setaside
from .clock import Clock
from .commit import failed
from .control import (
    DURABLE,
    END,
    EPOCH,
    FAILED,
    GENERATION,
    LAST,
    LOW,
    SEGMENT,
    ControlPage,
)
from .errors import CorruptLogError, StorageError
from .framing import Damage
from .log import Log
from .record import Open, SegmentStart
from .survey import Survey, survey
from .vfs import Access, Vfs


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryReport:
    """What an opening found and did; positions and sizes in bytes."""

    repaired: bool = False
    created: bool = False
    records_scanned: int = 0
    bytes_cut: int = 0
    damage: tuple[tuple[int, int], ...] = ()  # acknowledged records that are lost
    holes: tuple[tuple[int, int], ...] = ()  # ranges that were never acknowledged
    unknown_operations: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    seconds: float = 0.0

    def describe(self) -> str:
        """Return one readable line, worth logging when a program starts."""
        if self.created:
            return "new store"
        parts = []
        if self.bytes_cut:
            parts.append(f"cut {self.bytes_cut} bytes of an unfinished end")
        if self.damage:
            ranges = ", ".join(f"{start}-{end}" for start, end in self.damage)
            parts.append(
                f"{len(self.damage)} acknowledged range(s) are damaged: {ranges}"
            )
        if self.holes:
            parts.append(
                f"{len(self.holes)} range(s) that were never acknowledged hold nothing"
            )
        if self.unknown_operations:
            parts.append(
                f"skipped operations of a newer version: {', '.join(self.unknown_operations)}"
            )
        if self.set_aside:
            parts.append(f"bytes kept in {setaside.NAME}/: {', '.join(self.set_aside)}")
        if not parts:
            return "clean, nothing was repaired"
        return "; ".join(parts)


class Recovery:
    """Opening a store for writing; everything here happens under the flock."""

    def __init__(
        self,
        directory: str,
        log: Log,
        control: ControlPage,
        clock: Clock,
        vfs: Vfs,
        access: Access,
    ) -> None:
        self._directory = directory
        self._log = log
        self._control = control
        self._clock = clock
        self._vfs = vfs
        self._access = access

    def run(self) -> RecoveryReport:
        """Make the store and its control page fit for writing."""
        there = self._vfs.stat(self._directory)
        bases = self._log.refresh()
        current = self._control.is_current(self._clock.boot_id(), there)
        if current and bases and self._is_all_there(bases):
            segment.remove_before(self._directory, self._control.words[LOW], self._vfs)
            return RecoveryReport()
        began = self._clock.monotonic()
        if not bases or segment.is_unborn(self._directory, self._vfs):
            if self._control.is_ours and self._control.words[END]:
                msg = (
                    f"The segments of the log in {self._directory} are gone, but its control page "
                    "is there. Restore them from a copy, or remove the directory."
                )
                raise CorruptLogError(msg)
            return self._create(there)
        published = self._control.words[DURABLE] if current else 0
        return self._repair(there, began, published)

    def _is_all_there(self, bases: list[int]) -> bool:
        """Tell whether the log reaches as far as the control page of this boot says."""
        words = self._control.words
        newest = bases[-1]
        if newest < words[SEGMENT] < words[END]:  # else it is not made yet
            msg = (
                f"The segment {segment.file_name(words[SEGMENT])} is missing. "
                "Restore the file from a copy; nothing was changed."
            )
            raise CorruptLogError(msg)
        name = f"{self._directory}/{segment.file_name(newest)}"
        return newest + self._vfs.stat(name).st_size >= words[END]

    def _create(self, there: os.stat_result) -> RecoveryReport:
        store_id, boot = secrets.token_bytes(16), self._clock.boot_id()
        start = SegmentStart(
            format=record.FORMAT,
            store=store_id.hex(),
            epoch=1,
            boot=boot.hex(),
            generation=1,
        )
        opening = Open(epoch=1, boot=boot.hex(), t=self._clock.wall())
        lines = framing.encode_transaction([start], 0, 0)
        lines += framing.encode_transaction([opening], len(lines[0]), 0)
        # Under another name first: a segment of position 0 always begins whole.
        path = f"{self._directory}/{segment.file_name(0)}"
        fd = self._vfs.create(f"{path}.new", os.O_RDWR, self._access)
        try:
            self._vfs.ftruncate(fd, 0)
            self._vfs.write_all(fd, b"".join(lines))
            self._vfs.fsync(fd)
        finally:
            self._vfs.close(fd)
        self._vfs.rename(f"{path}.new", path)
        self._vfs.sync_directory(self._directory)
        self._vfs.sync_directory(os.path.dirname(self._directory))
        self._log.refresh()
        end = sum(map(len, lines))
        self._publish(
            there,
            store_id,
            {
                EPOCH: 1,
                GENERATION: 1,
                SEGMENT: 0,
                END: end,
                DURABLE: end,
                LAST: opening.at,
            },
        )
        return RecoveryReport(created=True)

    def _repair(
        self, there: os.stat_result, began: float, published: int
    ) -> RecoveryReport:
        found = survey(self._log, self._directory, self._vfs)
        kept: list[str] = []
        cut = 0
        while found.torn_segment:
            # It was begun and never got a whole record, so nothing in it was promised.
            cut += found.size_end - found.segment
            kept += self._keep(Damage(found.segment, found.size_end), setaside.TORN)
            self._vfs.unlink(f"{self._directory}/{segment.file_name(found.segment)}")
            self._log.close()
            found = survey(self._log, self._directory, self._vfs)
        if found.end < found.size_end:
            cut += found.size_end - found.end
            kept += self._keep(Damage(found.end, found.size_end), setaside.TORN)
        lost = [one for one in found.damage if one.start < found.durable]
        if found.end < published:
            # Somebody cut the log while the machine ran on.
            lost.append(Damage(found.end, published))
        holes = [one for one in found.damage if one.start >= found.durable]
        for one in found.damage:
            kept += self._keep(one, setaside.HOLE if one in holes else setaside.DAMAGED)
        boot = self._clock.boot_id().hex()
        epoch = found.epoch + 1
        generation = (
            found.generation
            if boot == found.boot and any(bytes.fromhex(boot))
            else epoch
        )
        opening = Open(
            epoch=epoch,
            boot=boot,
            t=self._clock.wall(),
            cut=cut,
            holes=[(hole.start, hole.end) for hole in holes],
        )
        known = max(found.durable, 0)
        (line,) = framing.encode_transaction([opening], found.end, known)
        fd = segment.open_to_append(self._directory, found.segment, self._vfs)
        try:
            if found.end < found.size_end:
                self._vfs.ftruncate(fd, found.end - found.segment)
            self._vfs.write_all(fd, line)
        finally:
            self._vfs.close(fd)
        end = found.end + len(line)
        store_id = bytes.fromhex(found.store)
        if not store_id:  # the records that name it are damaged
            is_named = self._control.is_ours
            store_id = self._control.store_id if is_named else secrets.token_bytes(16)
        words = {
            EPOCH: epoch,
            GENERATION: generation,
            SEGMENT: found.segment,
            END: end,
            DURABLE: end,
            LAST: opening.at,
            LOW: found.low,
        }
        self._make_durable(found, there, store_id, words)
        segment.remove_before(self._directory, found.low, self._vfs)
        return RecoveryReport(
            repaired=bool(cut or lost or holes),
            records_scanned=found.records,
            bytes_cut=cut,
            damage=tuple((one.start, one.end) for one in lost),
            holes=tuple((one.start, one.end) for one in holes),
            unknown_operations=tuple(sorted(set(found.unknown))),
            set_aside=tuple(kept),
            seconds=self._clock.monotonic() - began,
        )

    def _make_durable(
        self,
        found: Survey,
        there: os.stat_result,
        store_id: bytes,
        words: dict[int, int],
    ) -> None:
        """Sync what was found and mended, and publish it."""
        try:
            self._log.sync(found.start, words[END])
        except StorageError:
            raise  # no sync was tried
        except OSError as error:
            # As final as any other: what was read may not be on the disk, and another
            # sync would not tell.
            words = {**words, DURABLE: max(found.durable, 0), FAILED: 1}
            self._publish(there, store_id, words)
            raise failed(self._directory) from error
        self._publish(there, store_id, words)

    def _keep(self, damage: Damage, why: str) -> list[str]:
        data = self._log.read_range(damage.start, damage.end)
        if not data:
            return []
        where = self._directory, damage.start
        return [setaside.keep(*where, data, self._vfs, self._access, why=why)]

    def _publish(
        self, there: os.stat_result, store_id: bytes, words: dict[int, int]
    ) -> None:
        self._control.reset(
            store_id=store_id,
            boot_id=self._clock.boot_id(),
            directory=there,
            words=words.items(),
        )
