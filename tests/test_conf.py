"""What is read from Django's settings, and when."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_nobroker import conf, isolation
from django_nobroker.conf import Configuration


@pytest.fixture
def in_production(monkeypatch):
    monkeypatch.setattr(isolation, "tests_are_running", lambda: False)


def options_of(**given):
    return Configuration("default", {"OPTIONS": given}).options


def test_the_store_is_in_base_dir_by_default(in_production, settings):
    settings.BASE_DIR = Path("/srv/site")

    assert options_of().directory == Path("/srv/site/jobs")


def test_base_dir_may_be_a_string(in_production, settings):
    settings.BASE_DIR = "/srv/site"

    assert options_of().directory == Path("/srv/site/jobs")


def test_without_base_dir_the_directory_must_be_given(in_production, settings):
    del settings.BASE_DIR
    configuration = Configuration("default", {})

    assert [fault.option for fault in configuration.faults()] == ["DIRECTORY"]
    with pytest.raises(ImproperlyConfigured, match=r"TASKS\['default'\].*DIRECTORY"):
        configuration.options  # noqa: B018


def test_relative_paths_are_taken_from_base_dir(in_production, settings):
    settings.BASE_DIR = Path("/srv/site")
    options = options_of(DIRECTORY="queue", INDEX_DIRECTORY="../index")

    assert options.directory == Path("/srv/site/queue")
    assert options.index_directory == Path("/srv/site/../index")


def test_a_relative_directory_stays_where_it_was_first(
    in_production, settings, tmp_path, monkeypatch
):
    """A task that changes the working directory must not move the queue."""
    del settings.BASE_DIR
    monkeypatch.chdir(tmp_path)
    name = f"queue-{os.getpid()}"
    before = options_of(DIRECTORY=name).directory
    monkeypatch.chdir("/")

    assert before == tmp_path / name == options_of(DIRECTORY=name).directory


def test_wrong_options_do_not_keep_a_backend_from_being_made():
    configuration = Configuration("default", {"OPTIONS": {"FSYNC": "no"}})

    assert [fault.option for fault in configuration.faults()] == ["FSYNC"]


@pytest.mark.parametrize("given", [["FSYNC"], "FSYNC", 3])
def test_options_must_be_a_mapping(given):
    configuration = Configuration("default", {"OPTIONS": given})

    assert [str(f) for f in configuration.faults()] == ["OPTIONS must be a mapping."]


def test_while_tests_run_the_store_is_another(settings):
    settings.BASE_DIR = Path("/srv/site")
    directory = options_of().directory

    assert directory.is_dir()
    assert not directory.is_relative_to("/srv/site")
    assert options_of().directory == directory


def test_the_store_of_tests_can_be_given(settings, tmp_path):
    test = {"DIRECTORY": tmp_path / "jobs"}

    assert options_of(TEST=test).directory == tmp_path / "jobs"
    assert not (tmp_path / "jobs").exists()


def test_two_stores_are_two_in_tests_as_well(settings):
    first = options_of(DIRECTORY="/srv/a").directory
    second = options_of(DIRECTORY="/srv/b").directory

    assert first != second


def test_served_directories_are_found_in_the_settings(settings):
    settings.MEDIA_ROOT = "/srv/media"
    settings.STATIC_ROOT = None
    settings.STATICFILES_DIRS = ["/srv/static", ("prefix", Path("/srv/more"))]

    assert conf.served_directories() == {
        "MEDIA_ROOT": Path("/srv/media"),
        "STATICFILES_DIRS[0]": Path("/srv/static"),
        "STATICFILES_DIRS[1]": Path("/srv/more"),
    }
