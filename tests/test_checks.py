"""The system checks, each by its id."""

from __future__ import annotations

import os
from pathlib import Path

import django
import pytest
from django.core import checks as django_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from django_nobroker import checks, mounts
from django_nobroker.backends import LogBackend
from django_nobroker.compat import task_backends
from tests.stores import configure, configure_backend

OTHER = {"BACKEND": "django_nobroker.backends.LogBackend"}


@pytest.fixture(autouse=True)
def directory(settings, tmp_path):
    """A store that is all right."""
    directory = tmp_path / "jobs"
    configure(settings, TEST={"DIRECTORY": directory}, FILE_MODE=0o660)
    return directory


def ids(**options):
    found = django_checks.run_checks(**options)
    return [one.id for one in found if one.id.startswith("django_nobroker.")]


def messages():
    found = task_backends["default"].check()
    return {one.id.partition(".")[2]: one.msg for one in found}


def test_all_is_well_with_the_defaults():
    assert ids() == []
    assert ids(include_deployment_checks=True) == []


def test_nothing_is_opened_or_made(directory):
    ids(include_deployment_checks=True)

    assert not directory.exists()


def test_manage_check_reaches_the_backends(settings):
    """Django asks them only if somebody has imported its tasks."""
    configure(settings, FSYNC="no")

    with pytest.raises(SystemCheckError, match="FSYNC must be True or False"):
        call_command("check")


def test_e001_the_app_is_not_installed(settings):
    settings.INSTALLED_APPS = [
        app for app in settings.INSTALLED_APPS if app != "django_nobroker"
    ]

    assert "INSTALLED_APPS" in messages()["E001"]


def test_e002_there_is_no_directory(settings):
    del settings.BASE_DIR

    assert "DIRECTORY is missing" in messages()["E002"]


def test_e003_an_option_is_unknown_or_ill_typed(settings):
    configure(settings, MAX_ATEMPTS=3, FSYNC=1)
    found = [one.msg for one in task_backends["default"].check()]

    assert ids() == ["django_nobroker.E003"] * 2
    assert "MAX_ATEMPTS is not an option. Did you mean MAX_ATTEMPTS?" in found[0]
    assert found[0].startswith("TASKS['default']['OPTIONS']: ")


def test_e004_the_directory_is_a_file(directory):
    directory.write_text("")

    assert f"{directory} is a file" in messages()["E004"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_e004_the_directory_is_not_writable(directory):
    directory.mkdir(mode=0o500)

    assert "may not write" in messages()["E004"]


def test_e004_asks_the_directory_that_exists(monkeypatch, directory):
    asked = []
    monkeypatch.setattr(os, "access", lambda path, mode: asked.append(path))

    assert "may not write" in messages()["E004"]
    assert asked == [directory.parent]


def test_e005_two_aliases_share_a_directory(settings, directory, tmp_path):
    (tmp_path / "link").symlink_to(directory)
    options = {"OPTIONS": {"TEST": {"DIRECTORY": tmp_path / "link"}}}
    settings.TASKS = {**settings.TASKS, "other": {**OTHER, **options}}

    assert ids() == ["django_nobroker.E005"]
    assert task_backends["default"].check() == []
    assert "TASKS['default'] and TASKS['other'] share" in (
        task_backends["other"].check()[0].msg
    )


@pytest.mark.parametrize("setting", ["MEDIA_ROOT", "STATIC_ROOT"])
def test_e006_the_directory_is_served(settings, setting, tmp_path):
    setattr(settings, setting, str(tmp_path))

    assert f"inside {setting}" in messages()["E006"]


def test_e006_the_directory_is_a_static_one(settings, directory):
    directory.mkdir()
    settings.STATICFILES_DIRS = [("jobs", directory)]

    assert "inside STATICFILES_DIRS[0]" in messages()["E006"]


def test_e007_the_index_is_in_the_store(settings, directory):
    configure(settings, INDEX_DIRECTORY=directory / "index")

    assert "inside the store" in messages()["E007"]


def test_e008_there_is_no_such_database(settings):
    configure(settings, ENQUEUE_ON_COMMIT="defualt")

    assert "'defualt'" in messages()["E008"]
    assert "Did you mean default?" in messages()["E008"]


@pytest.mark.skipif(django.VERSION < (6, 0), reason="there is but one framework")
def test_w001_there_are_two_frameworks(monkeypatch):
    monkeypatch.setattr(checks.apps, "is_installed", lambda app: True)

    (warning,) = checks.check_frameworks()
    assert warning.id == "django_nobroker.W001"


def test_w002_others_may_read_the_store(directory, settings):
    directory.mkdir()
    directory.chmod(0o775)
    assert ids(include_deployment_checks=True) == ["django_nobroker.W002"]
    assert ids() == []

    directory.chmod(0o770)
    configure(settings, FILE_MODE=0o664)
    assert ids(include_deployment_checks=True) == ["django_nobroker.W002"]


def test_w003_the_file_system_is_on_a_network(monkeypatch, tmp_path):
    monkeypatch.setattr(
        mounts, "_mounts", lambda: [("/", "ext4"), (str(tmp_path), "nfs4")]
    )

    assert "(nfs4)" in messages()["W003"]


def test_w004_another_app_has_a_runworker(monkeypatch, tmp_path):
    assert list(checks.check_commands()) == []

    found = checks.find_commands
    monkeypatch.setattr(
        checks,
        "find_commands",
        lambda path: ["runworker"] if "contrib/auth" in path else found(path),
    )
    (warning,) = checks.check_commands()
    assert warning.id == "django_nobroker.W004"
    assert "django.contrib.auth" in warning.msg


def test_w005_the_log_is_not_synced(settings):
    configure(settings, FSYNC=False)

    assert ids(include_deployment_checks=True) == ["django_nobroker.W005"]
    assert ids() == []


def test_w006_an_override_is_of_no_queue(settings):
    configure(settings, QUEUES={"emials": {"MAX_ATTEMPTS": 1}})
    assert ids() == []

    configure_backend(settings, QUEUES=["default", "emails"])
    assert "Did you mean emails?" in messages()["W006"]


def test_mounts_are_read_from_the_system(tmp_path):
    assert mounts.network_file_system(Path("/proc/self")) == ""
    assert mounts.network_file_system(tmp_path / "not" / "there") in {"", "9p"}


def test_mount_points_with_blanks_are_understood(monkeypatch):
    lines = "server:/x /mnt/my\\040disk nfs rw 0 0\nnone / ext4 rw 0 0\n\nbroken\n"
    monkeypatch.setattr(Path, "read_text", lambda self, encoding: lines)

    assert mounts.network_file_system(Path("/mnt/my disk/jobs")) == "nfs"
    assert mounts.network_file_system(Path("/mnt/my")) == ""


def test_without_mounts_nothing_is_known(monkeypatch):
    def fail(self, encoding):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", fail)

    assert mounts.network_file_system(Path("/srv")) == ""


def test_a_subclass_is_checked_as_well(settings):
    class Mine(LogBackend):
        pass

    assert [one.id for one in Mine("default", {"OPTIONS": {"X": 1}}).check()] == [
        "django_nobroker.E003"
    ]
