"""Which of the records that were read count: whole transactions, and what damage costs."""

from __future__ import annotations

from itertools import chain

import pytest
from msgspec import Raw

from django_nobroker.engine import framing, replay
from django_nobroker.engine.record import Enqueue


def group(size: int, at: int) -> list[bytes]:
    return framing.encode_transaction(
        [
            Enqueue(id="r" * 20, queue="q", t=1.0, max=3, payload=Raw(str(n).encode()))
            for n in range(size)
        ],
        at,
        0,
    )


def log(*sizes: int) -> list[list[bytes]]:
    groups: list[list[bytes]] = []
    at = 0
    for size in sizes:
        groups.append(group(size, at))
        at += sum(map(len, groups[-1]))
    return groups


def spoil(line: bytes) -> bytes:
    return b"?" * len(line)


def whole(data: bytes, *, acknowledged: bool = False, final: bool = False):
    decoded = framing.decode_stretch(data, 0, final=final)
    return replay.whole_transactions(decoded, lambda position: acknowledged)


def positions(found: replay.Whole) -> list[int]:
    return [one.at for one in found.records]


def test_whole_transactions_count_with_all_their_members():
    groups = log(1, 3, 1, 2)
    data = b"".join(chain.from_iterable(groups))

    found = whole(data)

    assert len(found.records) == 7
    assert sum(found.sizes) == found.end == len(data)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_an_unfinished_transaction_at_the_end_waits_for_its_rest(size):
    groups = log(1, size)
    first = len(groups[0][0])
    for missing in range(1, size):
        data = b"".join(groups[0] + groups[1][:-missing])

        found = whole(data)

        assert positions(found) == [0]
        assert found.end == first


def test_an_unfinished_transaction_in_the_middle_is_dropped_whole():
    groups = log(1, 3, 1)
    for missing in range(3):
        lines = [*groups[1]]
        lines[missing] = spoil(lines[missing])
        data = b"".join(groups[0] + lines + groups[2])

        found = whole(data)

        assert positions(found) == [0, len(data) - len(groups[2][0])]
        assert found.end == len(data)


def test_a_damaged_member_of_an_acknowledged_transaction_costs_that_record_only():
    groups = log(1, 4, 1)
    for missing in range(4):
        lines = [*groups[1]]
        lines[missing] = spoil(lines[missing])
        data = b"".join(groups[0] + lines + groups[2])

        found = whole(data, acknowledged=True)

        assert len(found.records) == 5


def test_two_transactions_that_lost_their_edges_are_not_taken_for_one():
    """The first one's last and the second one's first record are gone."""
    groups = log(2, 2)
    data = b"".join(
        [groups[0][0], spoil(groups[0][1]), spoil(groups[1][0]), groups[1][1]]
    )

    found = whole(data)

    assert found.records == []
    assert found.end == len(data)


def test_a_transaction_that_lost_its_beginning_does_not_wait_for_ever():
    groups = log(4)
    data = spoil(groups[0][0]) + b"".join(groups[0][1:3])

    found = whole(data)

    assert found.records == []
    assert found.end == len(data)


def test_a_transaction_cut_at_a_stretch_is_whole_in_a_longer_one():
    groups = log(1, 5, 1)
    data = b"".join(chain.from_iterable(groups))
    for cut in range(len(data) + 1):
        first = whole(data[:cut])
        second = replay.whole_transactions(
            framing.decode_stretch(data[first.end :], first.end, final=True),
            lambda position: False,
        )

        assert len(first.records) + len(second.records) == 7
