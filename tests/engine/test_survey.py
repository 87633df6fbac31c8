"""The state of a log as its bytes tell it."""

from __future__ import annotations

import pytest

from django_nobroker.engine.errors import CorruptLogError
from django_nobroker.engine.log import Log
from django_nobroker.engine.record import Open
from django_nobroker.engine.survey import refuse_foreign, survey
from django_nobroker.engine.vfs import Access, Vfs
from tests.faults.files import FaultyFiles

from .driving import add, add_many, records, segments, snapshot


def surveyed(directory, files=None):
    vfs = files or Vfs()
    log = Log(str(directory), vfs, Access())
    try:
        return survey(log, str(directory), vfs)
    finally:
        log.close()


def test_a_survey_finds_what_the_control_page_says(store, clock):
    add_many(store, range(5))
    before = snapshot(store.directory)

    found = surveyed(store.directory)

    assert (found.end, found.size_end) == (store.end, store.end)
    assert found.records == 7
    assert found.store == store.control.store_id.hex()
    assert (found.epoch, found.generation) == (1, 1)
    assert found.boot == clock.boot_id().hex()
    assert found.last == records(store.directory)[-1].at
    assert (found.damage, found.unknown, found.torn_segment) == ([], [], False)
    assert snapshot(store.directory) == before


def test_epoch_and_generation_are_those_of_the_last_opening(open_store, store, clock):
    store.close()
    clock.restart()
    again = open_store(clock=clock)
    again.close()
    (again_path,) = segments(store.directory)
    (store.directory and again_path.parent / "control").unlink()
    open_store(clock=clock).close()

    found = surveyed(store.directory)

    assert isinstance(records(store.directory)[-1], Open)
    assert (found.epoch, found.generation) == (3, 2)


def test_only_what_may_not_be_durable_is_read(open_store, clock, directory):
    """A log of years is not read again at every start of the machine."""
    store = open_store(clock=clock, segment_size=500)
    for n in range(60):
        add(store, n)
    files = FaultyFiles()

    found = surveyed(directory, files)

    assert found.end == store.end
    assert found.records < 10
    assert found.start >= int(segments(directory)[-3].stem)


def test_an_unfinished_end_is_measured(store):
    end = store.end
    with segments(store.directory)[0].open("ab") as file:
        file.write(b"torn")

    found = surveyed(store.directory)

    assert (found.end, found.size_end, found.damage) == (end, end + 4, [])


def test_a_directory_of_others_is_refused_and_an_empty_one_is_not(tmp_path):
    log = Log(str(tmp_path), Vfs(), Access())
    refuse_foreign(log, str(tmp_path), Vfs())
    (tmp_path / "00000000000000000000.log").write_bytes(b"not ours" * 20)

    with pytest.raises(CorruptLogError):
        refuse_foreign(log, str(tmp_path), Vfs())
    log.close()
