"""Every record of the log, looked at while it is replayed: does it fit the one before?"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import lmdb

from .changes import Changes
from .control import DURABLE
from .errors import NobrokerError
from .framing import Damage
from .record import AnyRecord, JobRecord, Open, Unknown
from .states import Row
from .store import Store

_JOB = re.compile(rb'"job":([0-9]{1,19})[,}]')
_ID = re.compile(rb'"op":"enqueue",.{0,200}?"id":"([^"\\\x00-\x1f]{1,200})"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be; positions are byte offsets in the log.

    ``kind`` is one of ``damage``, ``segment``, ``transition``, ``unreadable``,
    ``index``, ``torn``, ``hole`` and ``unknown``. ``job`` is the id of the job that it
    concerns, as far as that can be told.
    """

    kind: str
    start: int
    end: int
    text: str
    job: str | None = None


@dataclass(slots=True)
class Scan:
    """What reading every record brings to light."""

    records: int = 0
    findings: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    holes: list[tuple[int, int]] = field(default_factory=list)

    def settled(self) -> tuple[list[Finding], list[Finding]]:
        """Return errors and notes: a hole that a recovery has listed is no error."""
        errors, notes = [], list(self.notes)
        for one in self.findings:
            if one.kind == "damage" and any(
                first <= one.start and one.end <= last for first, last in self.holes
            ):
                text = "no record, and none was ever acknowledged"
                notes.append(replace(one, kind="hole", text=text))
            else:
                errors.append(one)
        return errors, notes


class CheckedChanges(Changes):
    """Lets records happen to an index, and notes each one that does not fit."""

    def __init__(self, txn: lmdb.Transaction, store: Store, scan: Scan) -> None:
        super().__init__(txn)
        self._store = store
        self._scan = scan
        # Damage of a stretch is told after its records, so doubts wait for it.
        self._doubts: list[tuple[Finding, int, str]] = []

    def apply(
        self, records: Sequence[AnyRecord | Unknown], sizes: Sequence[int]
    ) -> None:
        """Let records happen one by one."""
        scan = self._scan
        scan.records += len(records)
        for record, size in zip(records, sizes, strict=True):
            if isinstance(record, JobRecord):
                self._check(record, size)
                continue
            if isinstance(record, Open):
                scan.holes += record.holes
            elif isinstance(record, Unknown):
                text = f"operation {record.op!r} of a newer version, skipped"
                scan.notes.append(_finding("unknown", record.at, size, text))
            super().apply((record,), (size,))

    def _check(self, record: JobRecord, size: int) -> None:
        row = self.row(record.job)
        name = _name(record)
        before = self.meta.orphans
        if row is None:
            if record.job >= self._store.log.first:
                text = f"{name} of a job that is not there"
                self._doubt(record, size, text, None, record.job)
        elif row.last != record.prev:
            text = f"{name} follows a record at {record.prev}, but the one before is at {row.last}"
            self._doubt(record, size, text, row, record.prev)
        super().apply((record,), (size,))  # type: ignore[arg-type]  # one of the operations
        if row is not None and self.meta.orphans > before:
            text = f"{name} does not fit the job's state"
            self._doubt(record, size, text, row, record.prev)

    def _doubt(
        self, record: JobRecord, size: int, text: str, row: Row | None, cause: int
    ) -> None:
        job = "" if row is None else row.id
        finding = _finding("transition", record.at, size, text, job or None)
        self._doubts.append((finding, cause, job))

    def note_damage(self, damage: Iterable[Damage]) -> None:
        """Note ranges without a record, and settle the doubts that they explain."""
        found = list(damage)
        super().note_damage(found)
        findings = self._scan.findings
        for one in found:
            last = findings[-1] if findings else None
            if last is not None and last.kind == "damage" and last.end == one.start:
                findings[-1] = replace(last, end=one.end)
            else:
                findings.append(self._damage(one))
        for doubt, cause, job in self._doubts:
            number = self._damaged_at(cause)
            if number is None:
                findings.append(doubt)
            elif findings[number].job is None and job:
                findings[number] = replace(findings[number], job=job)
        self._doubts.clear()

    def _damaged_at(self, position: int) -> int | None:
        for number, one in enumerate(self._scan.findings):
            if one.kind == "damage" and one.start <= position < one.end:
                return number
        return None

    def _damage(self, damage: Damage) -> Finding:
        job = self._job_at(damage)
        control = self._store.control
        durable = 0 if control is None else control.words[DURABLE]
        text = "no whole record; what stood there was acknowledged"
        if damage.start >= durable:
            text = "no whole record; it is not known whether it was acknowledged"
        return Finding(
            kind="damage", start=damage.start, end=damage.end, text=text, job=job
        )

    def _job_at(self, damage: Damage) -> str | None:
        """Return whose record stood there, as the index or what is left of it tells."""
        data = self._store.log.read(damage.start, min(damage.end - damage.start, 4096))
        with contextlib.suppress(NobrokerError):
            # The index may have followed the log before this was damaged.
            row = self._store.look(lambda tables: tables.row(damage.start))
            if row is not None:
                return row.id
        if found := _ID.search(data):
            return found[1].decode(errors="replace")
        if (found := _JOB.search(data)) and (row := self.row(int(found[1]))):
            return row.id
        return None


def _name(record: JobRecord) -> str:
    return f"the {record.__struct_config__.tag} record"


def _finding(
    kind: str, start: int, size: int, text: str, job: str | None = None
) -> Finding:
    return Finding(kind=kind, start=start, end=start + size, text=text, job=job)
