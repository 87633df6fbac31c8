"""One engine per store and process."""

from __future__ import annotations

import threading

import pytest

from django_nobroker import engines
from django_nobroker.options import read_options


@pytest.fixture
def made(monkeypatch):
    made = []
    monkeypatch.setattr(engines, "_engines", {})
    monkeypatch.setattr(engines, "_known", {})
    monkeypatch.setattr(
        engines, "make_engine", lambda options, alias: made.append(alias) or object()
    )
    return made


def test_a_store_has_one_engine_whoever_asks(made, tmp_path):
    options = read_options({}, tmp_path)
    start = threading.Barrier(8)
    found = []

    def ask():
        start.wait()
        found.append(engines.engine_for(options, alias="default"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert made == ["default"]
    assert len(set(map(id, found))) == 1


def test_a_link_leads_to_the_same_store(made, tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "jobs")
    found = {
        engines.engine_for(read_options({}, tmp_path / name), alias="default")
        for name in ("jobs", "link", "link/../jobs")
    }

    assert made == ["default"]
    assert len(found) == 1


def test_other_options_are_another_engine(made, tmp_path):
    engines.engine_for(read_options({}, tmp_path), alias="default")
    engines.engine_for(read_options({"MAX_ATTEMPTS": 2}, tmp_path), alias="default")

    assert made == ["default", "default"]
