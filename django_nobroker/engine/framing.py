r"""One record is one line of text: a checksum, a length, a JSON object.

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
from itertools import accumulate
from typing import NamedTuple

import msgspec

from .errors import SerializationError
from .record import AnyRecord, Enqueue, Record, Unknown

HEADER = 18
#: Bytes that a record adds around its JSON text: the header and the newline.
FRAME = HEADER + 1
#: How much of the log is decoded at once when many records are wanted.
STRETCH = 1 << 20
#: Spelt lengths kept in memory.
_MOST_LENGTHS = 100_000
#: The header has room for a length of eight digits.
_LONGEST = 99_999_999
#: A generated id is the position in twelve digits, then these many at random.
_ID_BYTES = 6
_RANDOM = 20
_CANDIDATE = re.compile(rb"[0-9a-f]{8} [0-9]{8} \{")


class Damage(NamedTuple):
    """A range of the log that holds no whole record."""

    start: int
    end: int


class _Lengths(dict[int, bytes]):
    """How a header spells a length; the few that occur are spelt once."""

    def __missing__(self, size: int) -> bytes:
        if len(self) > _MOST_LENGTHS:
            self.clear()
        text = self[size] = b" %08d " % size
        return text


_lengths = _Lengths()


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AnyRecord).decode
_decode_unknown = msgspec.json.Decoder(Unknown).decode
_crc32 = zlib.crc32
# What the decoder raises for what is no record of ours.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def encode_transaction(records: Sequence[Record], at: int, durable: int) -> list[bytes]:
    """Place records at ``at``, one transaction in all, and return their lines.

    A generated id begins with the position: so the id finds the job without an
    entry of its own. Placed again after a refused write, it begins with the new one.
    """
    left = of = len(records)
    lines: list[bytes] = []
    for record in records:
        record.at = at
        record.d = durable
        if of > 1:
            left -= 1
            record.left = left
            record.of = of
        if type(record) is Enqueue and not record.given:
            # Shorter than formatting it, on the way that every job takes.
            record.id = at.to_bytes(_ID_BYTES, "big").hex() + record.id[-_RANDOM:]
        body = _encode(record)
        size = len(body)
        if size > _LONGEST:
            raise SerializationError(
                f"A record would be {size} bytes of JSON; the log holds {_LONGEST}."
            )
        lines.append(b"%08x%b%b\n" % (_crc32(body, size), _lengths[size], body))
        at += size + FRAME
    return lines


def checksum(line: bytes) -> str:
    """Return the checksum of a line, as its header spells it."""
    return line[:8].decode("ascii")


def decode_body(body: bytes) -> AnyRecord | Unknown | None:
    """Return the record of a JSON text whose checksum was right, or None."""
    try:
        return _decode(body)
    except _UNREADABLE:
        pass
    try:
        record = _decode_unknown(body)
    except _UNREADABLE:
        return None
    return record


def decode_at(
    data: bytes, offset: int, base: int
) -> tuple[AnyRecord | Unknown, int] | None:
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
    if (
        len(body) != size
        or size < 0
        or header != b"%08x %08d " % (_crc32(body, size), size)
    ):
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
    quick = _whole_lines(data, base)
    if quick is not None and (quick.end == base + len(data) or not final):
        return quick
    return _carefully(data, base, final=final)


def _whole_lines(data: bytes, base: int) -> Decoded | None:
    """Decode a stretch of nothing but sound lines; None if anything is amiss.

    Whatever can be done for all lines at once is: this is the speed of a replay.
    """
    lines = data.split(b"\n")
    lines.pop()  # what follows the last newline is no whole line
    if not lines:
        return None
    bodies = [line[HEADER:] for line in lines]
    lengths = list(map(len, bodies))
    headers = [
        b"%08x" % total + _lengths[size]
        for total, size in zip(map(_crc32, bodies, lengths), lengths, strict=True)
    ]
    if headers != [line[:HEADER] for line in lines]:
        return None
    try:
        records: list[AnyRecord | Unknown] = list(map(_decode, bodies))
    except _UNREADABLE:
        return None
    sizes = [size + FRAME for size in lengths]
    positions = list(accumulate(sizes, initial=base))
    end = positions.pop()
    if [record.at for record in records] != positions:
        return None
    return Decoded(records, [], end, checksum(headers[-1]), sizes)


def _carefully(data: bytes, base: int, *, final: bool) -> Decoded:
    """Decode record by record: by length, then by whatever proves itself a record."""
    records: list[AnyRecord | Unknown] = []
    sizes: list[int] = []
    damage: list[Damage] = []
    offset = 0
    last = b""
    limit = len(data)
    while offset < limit:
        found = decode_at(data, offset, base)
        if found is not None and offset + found[1] <= limit:
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
    return Decoded(
        records, damage, base + offset, checksum(last) if last else "", sizes
    )


def _resynchronise(data: bytes, offset: int, base: int) -> int | None:
    for candidate in _CANDIDATE.finditer(data, offset + 1):
        start = candidate.start()
        if decode_at(data, start, base) is not None:
            return start
    return None
