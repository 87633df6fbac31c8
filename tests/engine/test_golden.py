"""Logs that released versions wrote are read for ever as they were meant.

A golden log is never made anew: a new format gets a directory of its own beside it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from django_nobroker.engine import (
    framing,
    history,
    integrity,
    keys,
    record,
    verification,
)
from django_nobroker.engine.store import Store

from .driving import STATE_NAMES, add, log_of, records, row, take_one

LOGS = sorted((Path(__file__).parent.parent / "golden").glob("*/*/"))


def jobs_of(store: Store):
    def look(tables):
        found = []
        for key in tables.entries(keys.JOB):
            position = keys.position_of(bytes(key))
            one = tables.row(position)
            queue, kind = tables.names.queues[one.queue], tables.names.kinds[one.kind]
            found.append((position, queue, kind))
        return found

    for position, queue, kind in store.look(look):
        one = row(store, position)
        text, result = history.payload(store, one), history.result(store, one)
        failure = history.failure(store, one)
        yield {
            "id": one.id,
            "queue": queue,
            "kind": kind,
            "state": STATE_NAMES[one.state],
            "attempts": one.attempts,
            "max_attempts": one.max_attempts,
            "priority": one.priority,
            "payload": None if text is None else json.loads(text),
            "result": None if result is None else json.loads(result),
            "error": None if failure is None else failure[0].message,
            "history": [type(one).__name__ for one in history.backwards(store, one)],
        }


@pytest.mark.parametrize("golden", LOGS, ids=lambda path: "-".join(path.parts[-2:]))
def test_a_log_of_any_released_format_is_read_as_it_was_meant(
    golden, directory, open_store, clock
):
    shutil.copytree(golden, directory, ignore=shutil.ignore_patterns("*.json"))
    expected = json.loads((golden / "jobs.json").read_text(encoding="utf-8"))

    reader = open_store(clock=clock, read_only=True, handle="reader")
    assert list(jobs_of(reader)) == expected
    assert integrity.check(reader).ok

    store = open_store(clock=clock)
    assert list(jobs_of(store)) == expected
    assert not store.recovery.repaired
    add(store, "of this version", queue="new")
    new = take_one(store, queues=["new"])
    assert history.payload(store, new.row) == b'"of this version"'
    assert verification.verify(store).ok


@pytest.mark.parametrize("golden", LOGS, ids=lambda path: "-".join(path.parts[-2:]))
def test_the_same_records_are_spelt_as_they_were(golden):
    """So that logs can be compared, and what reads them by other means goes on."""
    spelt, found = [], records(golden)
    while found:
        size = max(1, found[0].of)
        together, found = found[:size], found[size:]
        first = together[0]
        spelt += framing.encode_transaction(together, first.at, first.d)

    assert b"".join(spelt) == log_of(golden)


def test_every_operation_stands_in_a_golden_log():
    written = {type(one) for golden in LOGS for one in records(golden)}
    known = {
        kind
        for kind in vars(record).values()
        if isinstance(kind, type) and issubclass(kind, record.Record)
    }

    assert written >= known - {record.Record, record.JobRecord}
