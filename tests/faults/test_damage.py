"""A log that is cut or damaged anywhere keeps everything else, and tells."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from django_nobroker.engine import framing, integrity
from django_nobroker.engine.record import AnyRecord, JobRecord, SegmentStart, Unknown
from django_nobroker.engine.store import Store
from tests.engine.driving import log_of, segments
from tests.faults import story
from tests.faults.checker import Quick, check
from tests.faults.cuts import look_at
from tests.faults.hands import SettableClock
from tests.faults.places import Places
from tests.faults.witness import Expected, Witness
from tests.faults.world import World

PARTS = 4


def lived(root: Path, **options) -> World:
    """Return a closed store whose witness takes the end of the log for the time."""
    world = World(root, Quick(), **options)
    world.witness.now = lambda: world.store.end if world.is_open else 0
    world.live()
    world.batch()
    world.close()
    return world


# --- cut off ---------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(PARTS))
def test_a_log_cut_at_any_byte_keeps_what_was_whole_before(stores, part):
    with stores.one() as root:
        world = lived(root, segment_size=1 << 20)
        data = log_of(world.directory)
        witness = world.witness
    cuts = range(part, len(data) + 1, PARTS)

    for cut in cuts:
        cut_at(stores, data[:cut], witness)

    print(f"cut points recovered {len(cuts)}/{len(cuts)}")


def cut_at(stores: Places, data: bytes, witness: Witness) -> None:
    with stores.one() as root:
        directory = root / "jobs"
        directory.mkdir()
        (directory / "00000000000000000000.log").write_bytes(data)
        wrong = look_at(directory, witness.at(len(data)), SettableClock())
        assert not wrong, f"cut at {len(data)}: {wrong}"
        kept = b"".join(one.read_bytes() for one in directory.glob("set-aside/*"))
        rest = len(data) - len(kept)
        made_anew = b"\n" not in data  # nothing in it was whole, nothing was promised
        assert made_anew or log_of(directory)[:rest] + kept == data, (
            f"cut at {len(data)}"
        )


# --- damaged -----------------------------------------------------------------------------


class Middle(NamedTuple):
    """A store, the segment in its middle, and what is in the log."""

    world: World
    segment: Path
    data: bytes
    records: list[AnyRecord | Unknown]


@contextmanager
def with_a_middle(stores: Places) -> Iterator[Middle]:
    with stores.one() as root:
        world = lived(root)
        path = segments(world.directory)[1]
        assert len(segments(world.directory)) > 2
        data = path.read_bytes()
        found = framing.decode_stretch(data, int(path.stem), final=True)
        assert not found.damage
        yield Middle(world, path, data, found.records)


def test_a_flipped_bit_costs_one_record_at_most_and_is_noticed(stores):
    flips = lost = most = 0
    with with_a_middle(stores) as middle:
        base = int(middle.segment.stem)
        right = {one.at: one for one in middle.records}
        for place in range(len(middle.data)):
            for bit in range(8):
                data = bytearray(middle.data)
                data[place] ^= 1 << bit
                found = framing.decode_stretch(bytes(data), base, final=True)
                wrong = [one for one in found.records if right.get(one.at) != one]
                assert not wrong, f"byte {place}, bit {bit} was accepted: {wrong}"
                assert found.damage, f"byte {place}, bit {bit} was not noticed"
                missing = len(right) - len(found.records)
                most, lost = max(most, missing), lost + missing
                flips += 1

    print(f"<= {most} record lost, 0 wrong accepted: flips noticed {flips}/{flips}")
    assert most == 1
    assert lost < flips


@pytest.mark.parametrize("part", range(PARTS))
def test_a_store_with_a_flipped_bit_keeps_all_else_and_reports_it(stores, part):
    with with_a_middle(stores) as middle:
        places = range(part, len(middle.data), PARTS)
        for place in places:
            data = bytearray(middle.data)
            data[place] ^= 1 << place % 8
            spoilt(stores, middle, bytes(data), place)

    print(f"flips reported {len(places)}/{len(places)}")


@pytest.mark.parametrize(
    "filling", [b"\0", b"\xff", b"n"], ids=["zeros", "ones", "text"]
)
@pytest.mark.parametrize("size", [64, 512])
def test_a_damaged_block_costs_what_stood_in_it_only(stores, filling, size):
    with with_a_middle(stores) as middle:
        places = range(0, len(middle.data) - size, 61)
        for place in places:
            data = middle.data[:place] + filling * size + middle.data[place + size :]
            spoilt(stores, middle, data, place, size)

    print(f"damaged blocks reported {len(places)}/{len(places)}")


def spoilt(
    stores: Places, middle: Middle, data: bytes, place: int, size: int = 1
) -> None:
    """Check a copy of the store that has other bytes in its middle."""
    with stores.one() as root:
        directory = root / "jobs"
        shutil.copytree(middle.world.directory, directory)
        (directory / "control").unlink()
        (directory / middle.segment.name).write_bytes(data)
        base = int(middle.segment.stem)
        expected = middle.world.witness.finally_()
        hit = [
            one
            for one, stop in zip(
                middle.records,
                [*(one.at for one in middle.records[1:]), base + len(data)],
                strict=True,
            )
            if one.at < base + place + size and stop > base + place
        ]
        _allow_for(middle, expected, hit)
        clock = SettableClock()
        clock.restart()
        scratch = root.parent / "scratch"
        wrong = check(
            str(directory), expected, scratch=str(scratch), clock=clock, damaged=True
        )
        assert not wrong, f"byte {place}: {wrong}"
        store = Store(
            str(directory), read_only=True, clock=clock, index_root=str(scratch)
        )
        found = integrity.check(store)
        store.close()
        assert not found.ok, f"byte {place} was not reported"


def _allow_for(
    middle: Middle, expected: Expected, hit: list[AnyRecord | Unknown]
) -> None:
    """Let jobs be anything whose records are damaged: they lack a part of their past."""
    names = {position: name for name, position in middle.world.positions().items()}
    for one in hit:
        if isinstance(one, SegmentStart):
            continue
        job = one.job if isinstance(one, JobRecord) else one.at
        name = names[job]
        expected.jobs[name] = ["absent", *story.NAMES]
        # Of a job whose payload is lost only its number is known.
        expected.jobs[f"unreadable-{job}"] = ["absent", *story.NAMES]
