"""The control page: shared by all handles, believed only here and in this boot."""

from __future__ import annotations

import os

import pytest

from django_nobroker.engine import control
from django_nobroker.engine.control import END, EPOCH, ControlPage
from django_nobroker.engine.vfs import Access, Vfs

BOOT = b"\x07" * 16


@pytest.fixture
def page(tmp_path):
    made = ControlPage.open(str(tmp_path), Vfs(), Access())
    made.reset(
        store_id=b"\x01" * 16,
        boot_id=BOOT,
        directory=os.stat(tmp_path),
        words=[(EPOCH, 3), (END, 2**63)],
    )
    yield made
    made.close()


def test_a_page_that_was_never_written_is_not_ours(tmp_path):
    page = ControlPage.open(str(tmp_path), Vfs(), Access())

    assert not page.is_ours
    assert not page.is_current(BOOT, os.stat(tmp_path))
    page.close()


def test_every_handle_sees_the_same_words(tmp_path, page):
    other = ControlPage.open(str(tmp_path), Vfs(), Access())
    reader = ControlPage.open_to_read(str(tmp_path), Vfs())

    page.words[END] = 4242

    assert other.words[END] == reader.words[END] == 4242
    assert reader.store_id == b"\x01" * 16
    with pytest.raises(TypeError):
        reader.words[END] = 1
    other.close()
    reader.close()


def test_a_page_is_believed_in_its_boot_and_directory_only(tmp_path, page):
    (tmp_path / "other").mkdir()

    assert page.is_current(BOOT, os.stat(tmp_path))
    assert not page.is_current(b"\x08" * 16, os.stat(tmp_path))
    assert not page.is_current(BOOT, os.stat(tmp_path / "other"))


def test_a_boot_that_cannot_be_told_is_never_believed(tmp_path, page):
    page.reset(
        store_id=bytes(16), boot_id=bytes(16), directory=os.stat(tmp_path), words=[]
    )

    assert not page.is_current(bytes(16), os.stat(tmp_path))


def test_a_page_written_anew_keeps_nothing_of_before(tmp_path, page):
    page.set_waiting(5, 99)

    page.reset(
        store_id=b"\x02" * 16,
        boot_id=BOOT,
        directory=os.stat(tmp_path),
        words=[(EPOCH, 4)],
    )

    assert (page.words[EPOCH], page.words[END], page.waiting_until(5)) == (4, 0, 0)


def test_a_page_that_is_being_written_is_not_believed(tmp_path, page):
    page.invalidate()

    assert not page.is_current(BOOT, os.stat(tmp_path))


@pytest.mark.parametrize("size", [0, 100, 4095, 4097])
def test_a_file_of_another_size_is_not_looked_at(tmp_path, page, size):
    os.truncate(tmp_path / control.NAME, size)

    assert ControlPage.open_to_read(str(tmp_path), Vfs()) is None


def test_a_missing_page_is_none_to_a_reader(tmp_path):
    assert ControlPage.open_to_read(str(tmp_path), Vfs()) is None
    assert list(tmp_path.iterdir()) == []


def test_queues_meet_in_a_fixed_number_of_slots():
    slots = {control.waiting_slot(f"queue {n}") for n in range(2000)}

    assert slots == set(range(control.WAITING_SLOTS))
    assert control.waiting_slot("\u00e9\U0001f600") in slots
