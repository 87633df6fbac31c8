"""One record is one line of text: a checksum, a length, a JSON object.

::

    8665cdb8 00000163 {"op":"enqueue","at":12345,"d":12000, ... }\n

The header has a fixed width and comes first. The checksum is the CRC-32 of the
JSON text with the length as its initial value, so it covers both. The header is
compared as text, so a flipped bit that would read as the same number (``a`` and
``A``) is noticed too. A record also names its own position, so a block that was
copied to another place is damage as well. No input or output happens here.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

HEADER = 18
#: Bytes that a record adds around its JSON text: the header and the newline.
FRAME = HEADER + 1
_CANDIDATE = re.compile(rb"[0-9a-f]{8} [0-9]{8} \{")

FORMAT = 1
#: How much of the log is decoded at once when many records are wanted.
STRETCH = 1 << 20


class Record(Struct, tag_field="op", kw_only=True, omit_defaults=True):
    """What every record carries; the subclasses are the operations.

    ``at`` is its own position, ``d`` the highest position known durable when it
    was written. A transaction of several records also writes ``of``, how many
    they are, and ``left``, how many of them still follow.
    """

    at: int = -1
    d: int = -1
    left: int = 0
    of: int = 0


class SegmentStart(Record, tag="segment", kw_only=True):
    """The first record of a segment: which store, which format, what came before."""

    format: int
    store: str
    epoch: int
    boot: str
    generation: int
    prev: int = -1  # position of the segment before; -1 for the first one
    last: int = -1  # position of the last record before this one
    sum: str = ""  # and its checksum, as its header spells it


class Open(Record, tag="open", kw_only=True):
    """A recovery: a new epoch begins; another boot id voids every lease."""

    epoch: int
    boot: str
    t: float
    cut: int = 0  # bytes of an unfinished end that were set aside
    holes: list[tuple[int, int]] = []  # unacknowledged ranges that hold no record


class Enqueue(Record, tag="enqueue", kw_only=True):
    """A new job; its position is the job's number in every later record."""

    id: str = ""
    given: str = ""  # "queue" or "store": unique there; "" = made by the engine
    queue: str
    t: float
    priority: int = 0
    due: float | None = None  # wall clock; None = at once, whatever the clock says
    max: int
    kind: str = ""
    payload: Raw


class JobRecord(Record, kw_only=True):
    """Something that happened to one job; ``prev`` is the job's record before."""

    job: int
    prev: int
    t: float


class Lease(JobRecord, tag="lease", kw_only=True):
    """The job is given to a worker until ``until`` (boot clock, seconds)."""

    until: float
    worker: str = ""
    attempt: int


class Extend(JobRecord, tag="extend", kw_only=True):
    """The lease now ends at ``until`` (boot clock, seconds)."""

    until: float


class Ack(JobRecord, tag="ack", kw_only=True):
    """The job is done; its result, if there is one."""

    result: Raw | UnsetType = UNSET


class Failure(Struct, kw_only=True, omit_defaults=True):
    """Why an attempt failed, as text."""

    type: str = ""
    message: str = ""
    traceback: str = ""


class Nack(JobRecord, tag="nack", kw_only=True):
    """The attempt failed; the job is ready again after ``delay`` seconds.

    ``until`` is that moment on the boot clock. ``lost`` marks a lease that
    nobody settled in time.
    """

    delay: float
    until: float
    error: Failure
    lost: bool = False


class Dead(JobRecord, tag="dead", kw_only=True):
    """The job goes to the dead letters."""

    error: Failure
    reason: str


class Release(JobRecord, tag="release", kw_only=True):
    """The job was given back; the attempt does not count."""


class Requeue(JobRecord, tag="requeue", kw_only=True):
    """A dead job is ready again, with all its attempts before it."""

    by: str = ""


class Discard(JobRecord, tag="discard", kw_only=True):
    """Somebody threw the job away."""

    by: str = ""


AnyRecord = (
    SegmentStart
    | Open
    | Enqueue
    | Lease
    | Extend
    | Ack
    | Nack
    | Dead
    | Release
    | Requeue
    | Discard
)


class Unknown(Struct, kw_only=True):
    """A whole record of an operation that a newer version wrote: skipped, reported."""

    op: str
    at: int = -1
    d: int = -1
    left: int = 0
    of: int = 0


class Damage(NamedTuple):
    """A range of the log that holds no whole record."""

    start: int
    end: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AnyRecord).decode
_decode_unknown = msgspec.json.Decoder(Unknown).decode
_crc32 = zlib.crc32


def encode(record: Record) -> bytes:
    """Return the line of a record whose ``at``, ``d`` and ``left`` are set."""
    body = _encode(record)
    size = len(body)
    return b"%08x %08d %b\n" % (_crc32(body, size), size, body)


def encode_transaction(records: Sequence[Record], at: int, durable: int) -> list[bytes]:
    """Place records at ``at`` and return their lines, one transaction in all."""
    lines = []
    left = of = len(records)
    for record in records:
        left -= 1
        record.at = at
        record.d = durable
        if of > 1:
            record.left = left
            record.of = of
        if type(record) is Enqueue and not record.given:
            # The id of a job finds its row without an entry of its own.
            record.id = f"{at:012x}{record.id}"
        line = encode(record)
        at += len(line)
        lines.append(line)
    return lines


def checksum(line: bytes) -> str:
    """Return the checksum of a line, as its header spells it."""
    return line[:8].decode("ascii")


def decode_body(body: bytes) -> AnyRecord | Unknown | None:
    """Return the record of a JSON text whose checksum was right, or None."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        record = _decode_unknown(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return record


def decode_at(data: bytes, offset: int, base: int) -> tuple[AnyRecord | Unknown, int] | None:
    """Return the record at ``data[offset:]`` and its length, or None.

    ``base`` is the position of ``data[0]``. The length in the header decides
    where the record ends, whatever byte stands there instead of the newline.
    """
    header = data[offset : offset + HEADER]
    try:
        size = int(header[9:17])
    except ValueError:
        return None
    body = data[offset + HEADER : offset + HEADER + size]
    if len(body) != size or size < 0 or header != b"%08x %08d " % (_crc32(body, size), size):
        return None
    record = decode_body(body)
    if record is None or record.at != base + offset:
        return None
    return record, size + FRAME


class Decoded(NamedTuple):
    """What a stretch of the log holds."""

    records: list[AnyRecord | Unknown]
    damage: list[Damage]
    end: int  # the position after the last byte that was understood
    sum: str  # checksum of the last record, "" if there is none
    sizes: list[int]  # bytes of each record, newline included


def decode_stretch(data: bytes, base: int, *, final: bool) -> Decoded:
    """Decode as many records as ``data`` holds; ``base`` is the position of its first byte.

    A record that is cut off at the end is left for the next stretch, unless
    ``final`` says that none follows: then what is left over is damage.
    """
    records: list[AnyRecord | Unknown] = []
    sizes: list[int] = []
    damage: list[Damage] = []
    offset = 0
    last = b""
    limit = len(data)
    while offset < limit:
        # The quick way: whole lines, until one is not what its header says.
        for line in data[offset:].split(b"\n")[:-1] if offset else data.split(b"\n")[:-1]:
            body = line[HEADER:]
            size = len(body)
            if line[:HEADER] != b"%08x %08d " % (_crc32(body, size), size):
                break
            record = decode_body(body)
            if record is None or record.at != base + offset:
                break
            records.append(record)
            sizes.append(size + FRAME)
            last = line
            offset += size + FRAME
        if offset >= limit:
            break
        # The careful way: by length first, then by the next thing that proves
        # itself a record by checksum and position.
        found = decode_at(data, offset, base)
        if found is not None and offset + found[1] > limit:
            found = None
        if found is not None:
            record, size = found
            records.append(record)
            sizes.append(size)
            last = data[offset : offset + HEADER]
            if data[offset + size - 1 : offset + size] != b"\n":
                damage.append(Damage(base + offset + size - 1, base + offset + size))
            offset += size
            continue
        after = _resynchronise(data, offset, base)
        if after is None:
            if final:
                damage.append(Damage(base + offset, base + limit))
                offset = limit
            break
        damage.append(Damage(base + offset, base + after))
        offset = after
    return Decoded(records, damage, base + offset, checksum(last) if last else "", sizes)


def _resynchronise(data: bytes, offset: int, base: int) -> int | None:
    for candidate in _CANDIDATE.finditer(data, offset + 1):
        start = candidate.start()
        if decode_at(data, start, base) is not None:
            return start
    return None


def as_plain(record: AnyRecord | Unknown) -> dict[str, Any]:
    """Return a record as plain values, for display."""
    plain: dict[str, Any] = msgspec.json.decode(_encode(record))
    return plain
