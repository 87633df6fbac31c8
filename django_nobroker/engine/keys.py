"""How the index names its entries: byte strings that sort as they are read (pure).

One tree holds everything; the first byte says what. Every job has exactly one
entry in exactly one of the orders, the one that its state asks for.
"""

from __future__ import annotations

from hashlib import sha256
from struct import Struct

from . import states
from .states import Row

META = b"m"
NAMES = b"n"

_POSITION = Struct(">1sQ")
_QUEUE = Struct(">1sI")
_READY = Struct(">1sIHdQ")
_TIMED = Struct(">1sIdQ")
_QUEUED = Struct(">1sIdQ")

JOB = b"j"
COUNTS = b"c"
ID = b"i"
READY = b"r"  # queue, priority downwards, available at, position
WALL = b"w"  # 0, due on the wall clock, position
BOOT = b"b"  # boot, due on the boot clock, position
LEASED = b"l"  # boot, deadline on the boot clock, position
DEAD = b"d"  # queue, 0, position
DONE = b"f"  # queue, finished at, position
DISCARDED = b"x"  # queue, finished at, position
FORGOTTEN = b"o"  # queue, finished at, position

#: The scope of ids that are unique in the whole store instead of in a queue.
STORE_WIDE = 0xFFFF_FFFF
#: Where the queue ends in an entry; what follows sorts as jobs are taken.
QUEUE_END = _QUEUE.size
_TOP_PRIORITY = 32767
#: LMDB takes keys of up to 511 bytes; a longer id is known by its digest.
_LONGEST_ID = 400

# Where a job counts: a ready job counts as delayed until its time has come.
SLOTS = 7
(
    READY_SLOT,
    DELAYED_SLOT,
    LEASED_SLOT,
    DONE_SLOT,
    DEAD_SLOT,
    DISCARDED_SLOT,
    FORGOTTEN_SLOT,
) = range(SLOTS)


def job(position: int) -> bytes:
    """Return the key of a job's row."""
    return _POSITION.pack(JOB, position)


def counts(queue: int) -> bytes:
    """Return the key of a queue's counters."""
    return _QUEUE.pack(COUNTS, queue)


def given_id(scope: int, text: str) -> bytes:
    """Return the key under which a given id is remembered."""
    name = text.encode("utf-8", "surrogatepass")
    if len(name) > _LONGEST_ID:
        # No UTF-8 text begins with this byte, so it meets no short id.
        name = b"\xff" + sha256(name).digest()
    return _QUEUE.pack(ID, scope) + name


def position_of(key: bytes) -> int:
    """Return the job that an entry of an order stands for."""
    return int.from_bytes(key[-8:], "big")


def place(row: Row, position: int) -> tuple[bytes, int]:  # noqa: PLR0911 - one a place
    """Return the one entry that a job has in the orders, and where it counts."""
    state = row.state
    # max() has 0.0 first, so that -0.0, whose sign bit would sort last, becomes 0.0.
    if state == states.READY:
        if row.timer == states.DUE:
            priority = _TOP_PRIORITY - row.priority
            moment = max(0.0, row.available_at)
            return _READY.pack(READY, row.queue, priority, moment, position), READY_SLOT
        if row.timer == states.WALL:
            moment = max(0.0, row.available_at)
            return _TIMED.pack(WALL, 0, moment, position), DELAYED_SLOT
        moment = max(0.0, row.until)
        return _TIMED.pack(BOOT, row.generation, moment, position), DELAYED_SLOT
    if state == states.LEASED:
        moment = max(0.0, row.until)
        return _TIMED.pack(LEASED, row.generation, moment, position), LEASED_SLOT
    if state == states.DEAD:
        return _QUEUED.pack(DEAD, row.queue, 0.0, position), DEAD_SLOT
    moment = max(0.0, row.finished_at)
    if state == states.DONE:
        return _QUEUED.pack(DONE, row.queue, moment, position), DONE_SLOT
    if state == states.DISCARDED:
        return _QUEUED.pack(DISCARDED, row.queue, moment, position), DISCARDED_SLOT
    return _QUEUED.pack(FORGOTTEN, row.queue, moment, position), FORGOTTEN_SLOT


def order(row: Row, position: int) -> bytes:
    """Return the one entry that a job has in the orders."""
    return place(row, position)[0]


def slot(row: Row) -> int:
    """Return which counter of its queue a job counts in."""
    return place(row, 0)[1]


def queue_prefix(kind: bytes, queue: int) -> bytes:
    """Return what all entries of one queue in one order begin with."""
    return _QUEUE.pack(kind, queue)


def ready_prefix(queue: int, priority: int) -> bytes:
    """Return what the ready jobs of one queue and one priority begin with."""
    return queue_prefix(READY, queue) + (_TOP_PRIORITY - priority).to_bytes(2, "big")


def ready_parts(key: bytes) -> tuple[int, float]:
    """Return priority and availability of a ready entry."""
    _, _, priority, available_at, _ = _READY.unpack(key)
    return _TOP_PRIORITY - priority, available_at


def timed_parts(key: bytes) -> tuple[int, float]:
    """Return boot and time of a timed or leased entry."""
    _, generation, moment, _ = _TIMED.unpack(key)
    return generation, moment
