"""A fresh process that says what a store holds, and whether its log makes sense.

Usage: ``python -m tests.campaigns.checker STORE DIRECTORY``; a new index is built in
the directory. Prints one JSON object.
"""

from __future__ import annotations

import json
import sys

from django_nobroker.engine import keys
from django_nobroker.engine.store import Store
from django_nobroker.engine.tables import Tables
from tests.faults.story import Story, records


def contents(store: Store) -> dict[str, str]:
    """Return every entry of the index; what it says of itself only in part."""

    def look(tables: Tables) -> dict[str, str]:
        found = {
            key.hex(): bytes(value).hex()
            for key, value in tables.txn.cursor()
            if key != keys.META
        }
        meta = tables.meta
        found["meta"] = f"{meta.applied} {meta.epoch} {meta.orphans} {meta.damage}"
        return found

    return store.look(look)


def main(directory: str, scratch: str) -> None:
    """Compare the log, the index in use and a new one."""
    in_use = Store(directory, read_only=True)
    anew = Store(directory, read_only=True, index_root=scratch)
    story = Story()
    for record in records(in_use):
        story.read(record)
    old, new = contents(in_use), contents(anew)
    differences = [
        f"the index differs from a new one at {key}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]
    in_use.close()
    anew.close()
    jobs = [[job.id, story.state[at]] for at, job in story.jobs.items()]
    wrong = story.wrong + differences
    print(json.dumps({"figures": story.figures, "jobs": jobs, "wrong": wrong}))


if __name__ == "__main__":
    main(*sys.argv[1:])
