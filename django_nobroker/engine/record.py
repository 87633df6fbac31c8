"""The operations of the log: what each record says (no input or output, no bytes)."""

from __future__ import annotations

from msgspec import UNSET, Raw, Struct, UnsetType

FORMAT = 1


class Record(Struct, tag_field="op", kw_only=True, omit_defaults=True, gc=False):
    """What every record carries; the subclasses are the operations.

    ``at`` is its own position, ``d`` the highest position known durable when it
    was written. A transaction of several records also writes ``of``, how many
    they are, and ``left``, how many of them still follow.
    """

    # No record holds a reference to another one, so the collector of cycles,
    # dear when a log of millions is read, has nothing to find (gc=False).
    at: int = -1
    d: int = -1
    left: int = 0
    of: int = 0


class SegmentStart(Record, tag="segment", kw_only=True, gc=False):
    """The first record of a segment: which store, which format, what came before."""

    format: int
    store: str
    epoch: int
    boot: str
    generation: int
    prev: int = -1  # position of the segment before; -1 for the first one
    last: int = -1  # position of the last record before this one
    sum: str = ""  # and its checksum, as its header spells it
    low: int = 0  # where the log began when this was written


class Open(Record, tag="open", kw_only=True, gc=False):
    """A recovery: a new epoch begins; another boot id voids every lease."""

    epoch: int
    boot: str
    t: float
    cut: int = 0  # bytes of an unfinished end that were set aside
    holes: list[tuple[int, int]] = []  # unacknowledged ranges that hold no record


class Enqueue(Record, tag="enqueue", kw_only=True, gc=False):
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


class JobRecord(Record, kw_only=True, gc=False):
    """Something that happened to one job; ``prev`` is the job's record before."""

    job: int
    prev: int
    t: float


class Lease(JobRecord, tag="lease", kw_only=True, gc=False):
    """The job is given to a worker until ``until`` (boot clock, seconds)."""

    until: float
    worker: str = ""
    attempt: int


class Extend(JobRecord, tag="extend", kw_only=True, gc=False):
    """The lease now ends at ``until`` (boot clock, seconds)."""

    until: float


class Ack(JobRecord, tag="ack", kw_only=True, gc=False):
    """The job is done; its result, if there is one."""

    result: Raw | UnsetType = UNSET


class Failure(Struct, kw_only=True, omit_defaults=True, gc=False):
    """Why an attempt failed, as text."""

    type: str = ""
    message: str = ""
    traceback: str = ""


class Nack(JobRecord, tag="nack", kw_only=True, gc=False):
    """The attempt failed; the job is ready again after ``delay`` seconds.

    ``until`` is that moment on the boot clock. ``lost`` marks a lease that
    nobody settled in time.
    """

    delay: float
    until: float
    error: Failure
    lost: bool = False


class Dead(JobRecord, tag="dead", kw_only=True, gc=False):
    """The job goes to the dead letters."""

    error: Failure
    reason: str


class Release(JobRecord, tag="release", kw_only=True, gc=False):
    """The job was given back; the attempt does not count."""


class Requeue(JobRecord, tag="requeue", kw_only=True, gc=False):
    """A dead job is ready again, with all its attempts before it."""

    by: str = ""


class Discard(JobRecord, tag="discard", kw_only=True, gc=False):
    """Somebody threw the job away."""

    by: str = ""


class Moved(JobRecord, tag="moved", kw_only=True, gc=False):
    """A job of a segment that goes, written again: all that is known of it.

    ``records`` are its records as they stood in the log, the enqueue first, the
    newest ones after it; ``omitted`` says that older ones in between were left
    out. Without an enqueue the payload is lost or forgotten. ``failed`` tells that
    the newest failure among them is the job's error; ``print`` is the payload's
    fingerprint if the job is forgotten.
    """

    id: str
    given: str = ""
    queue: str
    kind: str = ""
    priority: int = 0
    enqueued: float
    available: float
    max: int
    timer: int = 0
    state: int
    attempts: int = 0
    until: float = 0.0
    generation: int = 0
    epoch: int = 0
    token: int = 0
    started: float = 0.0
    attempted: float = 0.0
    finished: float = 0.0
    failed: bool = False
    omitted: bool = False
    print: str = ""
    records: list[Raw] = []


class Purge(Record, tag="purge", kw_only=True, gc=False):
    """Jobs are taken out of the store, their ids released."""

    jobs: list[int]
    t: float
    by: str = ""


class Forget(Record, tag="forget", kw_only=True, gc=False):
    """Of ended jobs nothing stays but the given id, which blocks another one.

    ``prints`` are the fingerprints of their payloads, in the same order.
    """

    jobs: list[int]
    prints: list[str]
    t: float


class Drop(Record, tag="drop", kw_only=True, gc=False):
    """Nothing before position ``before`` is needed any more.

    ``totals`` says by queue what ever happened there: enqueued, done, failed
    attempts, dead, requeued, discarded.
    """

    before: int
    t: float
    totals: dict[str, list[int]]


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
    | Moved
    | Purge
    | Forget
    | Drop
)


class Unknown(Struct, kw_only=True, gc=False):
    """A whole record of an operation that a newer version wrote: skipped, reported."""

    op: str
    at: int = -1
    d: int = -1
    left: int = 0
    of: int = 0
