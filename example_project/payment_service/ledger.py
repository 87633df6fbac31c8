"""The service's memory: one JSON file, changed by one process at a time."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(slots=True, kw_only=True)
class Account:
    """What happened under one idempotency key."""

    customer: str
    cents: int
    calls: int = 0
    receipt: str = ""  # empty = not charged yet


@dataclass(slots=True, kw_only=True)
class Book:
    """Everything the service remembers."""

    silent_banks_of: list[str] = field(default_factory=list)
    accounts: dict[str, Account] = field(default_factory=dict)  # by idempotency key


@dataclass(frozen=True, slots=True)
class Ledger:
    """The file; a missing one is a new book."""

    path: Path
    silent_at_first: tuple[str, ...] = ()

    def read(self) -> Book:
        """Return what is in the book now."""
        try:
            stored = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return Book(silent_banks_of=list(self.silent_at_first))
        accounts = {key: Account(**entry) for key, entry in stored["accounts"].items()}
        return Book(silent_banks_of=stored["silent_banks_of"], accounts=accounts)

    @contextmanager
    def opened(self) -> Iterator[Book]:
        """Lend the book to one caller, and store it when they give it back.

        It is stored even if the caller raises: a failed call is a call.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            book = self.read()
            try:
                yield book
            finally:
                draft = self.path.with_suffix(".draft")
                draft.write_text(json.dumps(asdict(book), indent=2))
                # Replaced in one step: a reader sees the old book or the new one.
                draft.replace(self.path)
