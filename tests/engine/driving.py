"""What the engine's tests do with a store, in one line each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from django_nobroker.engine import (
    claim,
    enqueue,
    framing,
    history,
    keys,
    settle,
    states,
)
from django_nobroker.engine.claim import Claim, Claimed, Wish
from django_nobroker.engine.enqueue import Duplicate
from django_nobroker.engine.record import AnyRecord, Enqueue, Failure, Unknown
from django_nobroker.engine.settle import Held
from django_nobroker.engine.states import Row
from django_nobroker.engine.store import Store
from django_nobroker.engine.tables import Tables

TIMEOUT = 20.0
#: Orders that are by a boot or by nothing, not by queue.
_TIMED = (keys.WALL, keys.BOOT, keys.LEASED)
STATE_NAMES = ("ready", "leased", "done", "dead", "discarded", "forgotten")


def new(store: Store, payload: object = 1, **options: Any) -> Enqueue:
    """Return the record of a job that is not placed yet."""
    now = store.clock.wall()
    delay = options.pop("delay", None)
    values: dict[str, Any] = {"queue": "q", "max_attempts": 3, **options}
    return enqueue.new(
        payload=msgspec.json.encode(payload),
        now=now,
        due=None if delay is None else now + delay,
        **values,
    )


def add(
    store: Store, payload: object = 1, *, durable: bool = True, **options: Any
) -> Enqueue:
    """Enqueue one job."""
    (answer,) = enqueue.place(
        store, [new(store, payload, **options)], durable=durable, timeout=TIMEOUT
    )
    assert isinstance(answer, Enqueue)
    return answer


def add_many(
    store: Store, payloads: Iterable[object], *, durable: bool = True, **options: Any
) -> list[Enqueue]:
    """Enqueue several jobs in one transaction."""
    answers = enqueue.place(
        store,
        [new(store, payload, **options) for payload in payloads],
        durable=durable,
        timeout=TIMEOUT,
    )
    return [one for one in answers if not isinstance(one, Duplicate)]


def look_for_work(store: Store, count: int = 1, **wish: Any) -> Claim:
    """Claim, and return everything that the claim found."""
    values: dict[str, Any] = {
        "queues": None,
        "asks_for_retries": True,
        "seconds": 30.0,
        "delay": lambda queue, attempt: 0.0,
        **wish,
    }
    return claim.claim(store, Wish(count=count, **values), timeout=TIMEOUT)


def take(store: Store, count: int = 1, **wish: Any) -> list[Claimed]:
    """Claim up to ``count`` jobs."""
    return list(look_for_work(store, count, **wish).jobs)


def take_one(store: Store, **wish: Any) -> Claimed:
    """Claim the next job; there has to be one."""
    (job,) = take(store, 1, **wish)
    return job


def held(job: Claimed) -> Held:
    """Return the proof that the job was leased."""
    return Held(job.position, job.token)


def ack(store: Store, job: Claimed, result: object = None, **options: Any) -> Row:
    """Finish a job."""
    return settle.ack(
        store,
        held(job),
        result=None if result is None else msgspec.json.encode(result),
        durable=options.get("durable", True),
        timeout=TIMEOUT,
    )


def nack(
    store: Store, job: Claimed, *, delay: float | None = 0.0, error: str = "no"
) -> settle.Settled:
    """End an attempt in failure."""
    return settle.nack(
        store,
        held(job),
        error=Failure(type="Error", message=error),
        delay=delay,
        backoff=lambda queue, attempt: 10.0 * attempt,
        durable=True,
        timeout=TIMEOUT,
    )


def release(store: Store, job: Claimed) -> Row:
    """Give a job back."""
    return settle.release(store, held(job), durable=True, timeout=TIMEOUT)


def kill(store: Store, **wish: Any) -> int:
    """Claim the next job and send it to the dead letters; return its number."""
    job = take_one(store, **wish)
    settle.bury(
        store,
        held(job),
        error=Failure(type="Error", message="no"),
        reason=settle.REJECTED,
        durable=True,
        timeout=TIMEOUT,
    )
    return job.position


def fill(store: Store) -> Enqueue:
    """Let everything happen that jobs may live through; return the first of them."""
    first, *_ = add_many(store, range(8))
    ack(store, take_one(store))
    nack(store, take_one(store))
    release(store, take_one(store))
    kill(store)
    add(store, job_id=f"given-{store.end}", scope="queue")
    take_one(store)
    return first


def row(store: Store, position: int) -> Row:
    """Return what the index knows of a job."""
    found = store.look(lambda tables: tables.row(position))
    assert found is not None
    return found


def counts(store: Store, queue: str = "q") -> dict[str, int]:
    """Return the counters of a queue that are not zero."""

    def look(tables: Tables) -> tuple[int, ...]:
        number = tables.queue_number(queue)
        return () if number is None else tables.counts(number)

    names = ("ready", "delayed", "leased", "done", "dead", "discarded", "forgotten")
    return {
        name: value
        for name, value in zip(names, store.look(look), strict=False)
        if value
    }


def payloads(store: Store) -> dict[str, list[Any]]:
    """Return the payloads of all jobs by state, in the order of their enqueues."""
    found: dict[str, list[Any]] = {}

    def look(tables: Tables) -> list[Row]:
        rows = [
            tables.row(keys.position_of(bytes(key))) for key in tables.entries(keys.JOB)
        ]
        return [one for one in rows if one is not None]

    for one in store.look(look):
        text = history.payload(store, one)
        assert text is not None
        value = msgspec.json.decode(text)
        found.setdefault(STATE_NAMES[one.state], []).append(value)
    return found


def everything(store: Store) -> dict[str, Any]:
    """Return the whole index as plain values: rows, orders, counters and ids.

    Queues and kinds stand there by name: their numbers are each index's own.
    """

    def look(tables: Tables) -> dict[str, Any]:
        queues, kinds = tables.names.queues, tables.names.kinds
        found: dict[str, Any] = {
            "rows": {},
            "counts": {},
            "totals": {},
            "orders": set(),
            "ids": {},
            "live": tables.meta.live,
            "epoch": tables.meta.epoch,
            "generation": tables.meta.generation,
            "orphans": tables.meta.orphans,
            "unknown": tables.meta.unknown,
        }
        for number, name in enumerate(queues):
            found["counts"][name] = tables.counts(number)
            found["totals"][name] = tables.totals(number)
        for key, value in tables.txn.cursor():
            entry = bytes(key)
            if entry[:1] in (keys.META, keys.NAMES, keys.COUNTS):
                continue
            if entry[:1] == keys.JOB:
                position = keys.position_of(entry)
                known = tables.row(position)
                assert known is not None
                one = msgspec.structs.asdict(known)
                one["queue"], one["kind"] = queues[one["queue"]], kinds[one["kind"]]
                found["rows"][position] = one
                continue
            number = int.from_bytes(entry[1:5], "big")
            if number != keys.STORE_WIDE and entry[:1] not in _TIMED:
                entry = entry[:1] + queues[number].encode() + entry[5:]
            if entry[:1] == keys.ID:
                found["ids"][entry] = value
            else:
                found["orders"].add(entry)
        return found

    return store.look(look)


def lasting(store: Store) -> dict[str, Any]:
    """Return of everything what a compaction leaves as it is."""
    found = everything(store)
    del found["live"]
    for one in found["rows"].values():
        for name in ("data", "size", "last", "weight"):
            del one[name]
        one["error"] = bool(one["error"])
    return found


def recount(store: Store) -> dict[str, tuple[int, ...]]:
    """Count the jobs of each queue by looking at every row."""

    def look(tables: Tables) -> dict[str, tuple[int, ...]]:
        found = {name: [0] * keys.SLOTS for name in tables.names.queues}
        for key in tables.entries(keys.JOB):
            one = tables.row(keys.position_of(bytes(key)))
            assert one is not None
            if one.state == states.READY:
                slot = 0 if one.timer == states.DUE else 1
            else:
                slot = {
                    states.LEASED: 2,
                    states.DONE: 3,
                    states.DEAD: 4,
                    states.DISCARDED: 5,
                    states.FORGOTTEN: 6,
                }[one.state]
            found[tables.names.queues[one.queue]][slot] += 1
        return {name: tuple(slots) for name, slots in found.items()}

    return store.look(look)


def segments(directory: str | os.PathLike[str]) -> list[Path]:
    """Return the segments of a store, oldest first."""
    return sorted(Path(directory).glob("*.log"))


def log_of(directory: str | os.PathLike[str]) -> bytes:
    """Return all bytes of a log."""
    return b"".join(path.read_bytes() for path in segments(directory))


def records(directory: str | os.PathLike[str]) -> list[AnyRecord | Unknown]:
    """Return the records that a log's bytes hold."""
    data = log_of(directory)
    return framing.decode_stretch(data, first_of(directory), final=True).records


def first_of(directory: str | os.PathLike[str]) -> int:
    """Return the position at which a log begins."""
    return int(segments(directory)[0].name[:20])


def snapshot(directory: str | os.PathLike[str]) -> dict[str, tuple[int, bytes]]:
    """Return every file below a directory with its mode and its bytes."""
    root = Path(directory)
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(root.rglob("*"))
    }


def lose_control_page(directory: str | os.PathLike[str]) -> None:
    """Take away what only this boot knows, as a power cut does."""
    (Path(directory) / "control").unlink()


def flip(directory: str | os.PathLike[str], position: int, *, bit: int = 1) -> None:
    """Change bits of the byte at a position of the log."""
    path = [one for one in segments(directory) if int(one.name[:20]) <= position][-1]
    data = bytearray(path.read_bytes())
    data[position - int(path.name[:20])] ^= bit
    path.write_bytes(data)


def whole_lines(data: bytes) -> Sequence[bytes]:
    """Return the lines of a log's bytes, newlines included."""
    return data.splitlines(keepends=True)
