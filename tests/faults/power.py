"""The power fails: every state in which a recorded disk may be afterwards.

The model is what POSIX promises and no more. What was synced is there. Of what was
not, each change happened or did not, whatever its order: a write may be there whole,
not at all, up to any byte, or with some of its sectors only, and then the file is as
long as if it were there, with zeros in place of what is missing. A name that was made,
changed or taken away is so only once its directory was synced.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .recorder import (
    ROOT,
    Change,
    Made,
    Removed,
    Renamed,
    Resized,
    Synced,
    Written,
)

SECTOR = 512
#: So many states at a place are listed one by one, above that they are drawn.
EXHAUSTIVE = 96
DRAWN = 48

#: One way in which a change came out: it, a part of it, or nothing.
Outcome = Sequence[Written | Resized | Made | Renamed | Removed]


@dataclass
class Disk:
    """Files by number, and directories: the name of each entry and its number."""

    files: dict[int, bytes] = field(default_factory=dict)
    folders: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})

    def copy(self) -> Disk:
        return Disk(dict(self.files), {n: dict(e) for n, e in self.folders.items()})

    def happen(self, change: Change) -> None:
        if isinstance(change, Written):
            data = self.files.get(change.node, b"").ljust(change.offset, b"\0")
            end = change.offset + len(change.data)
            self.files[change.node] = data[: change.offset] + change.data + data[end:]
        elif isinstance(change, Resized):
            data = self.files.get(change.node, b"")
            self.files[change.node] = data[: change.size].ljust(change.size, b"\0")
        elif isinstance(change, Made):
            self.folders[change.folder][change.name] = change.node
        elif isinstance(change, Renamed):
            entries = self.folders[change.folder]
            # Without its making the old name was never on the disk: nothing to rename.
            if entries.get(change.old) == change.node:
                entries[change.new] = entries.pop(change.old)
        elif isinstance(change, Removed):
            self.folders[change.folder].pop(change.name, None)

    def tree(self) -> dict[str, bytes | None]:
        """Return every file by its path; directories are None."""
        return dict(self._below(ROOT, ""))

    def _below(self, folder: int, path: str) -> Iterator[tuple[str, bytes | None]]:
        for name, node in sorted(self.folders[folder].items()):
            if node in self.folders:
                yield path + name, None
                yield from self._below(node, f"{path}{name}/")
            else:
                yield path + name, self.files.get(node, b"")


class Crash:
    """A disk after so many changes: what is on it for sure, and what may be."""

    def __init__(self) -> None:
        self.sure = Disk()
        self.pending: list[Change] = []

    def go_on(self, change: Change) -> None:
        """Let one more change happen before the power fails."""
        if isinstance(change, Made):
            if change.is_folder:
                self.sure.folders[change.node] = {}
            else:
                self.sure.files[change.node] = b""
        if not isinstance(change, Synced):
            self.pending.append(change)
            return
        for one in self.pending:
            if _where(one) == change.node:
                self.sure.happen(one)
        self.pending = [one for one in self.pending if _where(one) != change.node]

    def states(self, chance: random.Random) -> Iterator[dict[str, bytes | None]]:
        """Yield the states in which the disk may be, or a choice if they are many."""
        ways = [_outcomes(change) for change in self.pending]
        for chosen in _choices(ways, chance):
            disk = self.sure.copy()
            for outcome in chosen:
                for part in outcome:
                    disk.happen(part)
            yield disk.tree()


def _where(change: Change) -> int:
    if isinstance(change, Made | Renamed | Removed):
        return change.folder
    return change.node


def _outcomes(change: Change) -> list[Outcome]:
    """Return what may have become of a change: all of it first, nothing second."""
    ways: list[Outcome] = [(change,), ()]  # type: ignore[list-item]
    if isinstance(change, Resized) and change.size == 0:
        return ways
    if not isinstance(change, Written) or not change.data:
        return ways
    node, offset, data = change.node, change.offset, change.data
    end = offset + len(data)
    ways.append((Resized(node, end),))  # the length alone; zeros
    bounds = [offset, *range((offset // SECTOR + 1) * SECTOR, end, SECTOR), end]
    sectors = [
        Written(node, start, data[start - offset : stop - offset])
        for start, stop in itertools.pairwise(bounds)
    ]
    if len(sectors) > 1:
        for number in range(len(sectors)):
            # One sector missing, or only the first ones there.
            ways.append((Resized(node, end), *sectors[:number], *sectors[number + 1 :]))
            ways.append(tuple(sectors[:number]))
    sizes = sorted({1, 8, 17, 18, len(data) // 2, len(data) - 1})
    ways += [(Written(node, offset, data[:n]),) for n in sizes if 0 < n < len(data)]
    return ways


def _choices(
    ways: list[list[Outcome]], chance: random.Random
) -> Iterator[Sequence[Outcome]]:
    total = 1
    for one in ways:
        total *= len(one)
    if total <= EXHAUSTIVE:
        yield from itertools.product(*ways)
        return
    everything, nothing = [one[0] for one in ways], [one[1] for one in ways]
    yield everything
    yield nothing
    for number, one in enumerate(ways):
        for outcome in one[1:]:  # everything but this
            yield [*everything[:number], outcome, *everything[number + 1 :]]
        yield [*nothing[:number], one[0], *nothing[number + 1 :]]  # nothing but this
    for _ in range(DRAWN):
        yield [chance.choice(one) for one in ways]


def write(tree: dict[str, bytes | None], root: str | os.PathLike[str]) -> None:
    """Put a state of the disk below a directory."""
    for path, data in tree.items():
        place = Path(root, path)
        if data is None:
            place.mkdir(parents=True)
        else:
            place.write_bytes(data)
