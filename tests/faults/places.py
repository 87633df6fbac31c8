"""Where the tests of faults put their stores: on memory, since many are made."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Places:
    """Directories for one store each, beside its index."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._numbers = itertools.count()

    @contextmanager
    def one(self) -> Iterator[Path]:
        """Lend an empty directory; it is gone afterwards, and its neighbours, too."""
        around = self._root / str(next(self._numbers))
        root = around / "disk"
        root.mkdir(parents=True)
        (around / "scratch").mkdir()
        try:
            yield root
        finally:
            shutil.rmtree(around)


@contextmanager
def places() -> Iterator[Places]:
    """Lend places that are fast to write to and gone afterwards."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as root:
        yield Places(Path(root))
