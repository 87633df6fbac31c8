"""System checks: what is wrong with the settings, before it is wrong at night.

They look and never open, create or lock anything.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from django.apps import AppConfig, apps
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004
from django.core.management import find_commands

from . import conf
from .compat import HAS_OWN_FRAMEWORK, task_backends
from .mounts import network_file_system
from .options import Options, nearest

APP = "django_nobroker"


@runtime_checkable
class Checked(Protocol):
    """What the checks need to know of a backend."""

    alias: str
    queues: set[str]
    configuration: conf.Configuration


def check_backend(backend: Checked) -> Iterator[CheckMessage]:
    """Check one alias of ``TASKS``; the backend calls it from its ``check()``."""
    if not apps.is_installed(APP):
        yield Error(
            f"{APP} is not in INSTALLED_APPS.",
            hint="Add it: without it there is no runworker and no admin.",
            id=f"{APP}.E001",
        )
    faults = backend.configuration.faults()
    for fault in faults:
        number = "E002" if fault.option == "DIRECTORY" else "E003"
        yield Error(f"{_where(backend)}: {fault}", id=f"{APP}.{number}")
    if not faults:
        options = backend.configuration.options
        yield from _check_directory(backend, options.directory)
        yield from _check_neighbours(backend, options.directory)
        yield from _check_values(backend, options)


def _where(backend: Checked) -> str:
    return f"TASKS[{backend.alias!r}]['OPTIONS']"


def _check_directory(backend: Checked, directory: Path) -> Iterator[CheckMessage]:
    place = directory
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        yield Error(
            f"{_where(backend)}: DIRECTORY is {directory}, and {place} is a file.",
            id=f"{APP}.E004",
        )
    elif not os.access(place, os.R_OK | os.W_OK | os.X_OK):
        yield Error(
            f"{_where(backend)}: DIRECTORY is {directory}, and this user may not "
            f"write into {place}.",
            hint="Let the user or group of the web server and the worker own it.",
            id=f"{APP}.E004",
        )
    for setting, served in conf.served_directories().items():
        if _is_within(directory, served):
            yield Error(
                f"{_where(backend)}: DIRECTORY is {directory}, inside {setting}: "
                "the arguments of all jobs would be served to the public.",
                id=f"{APP}.E006",
            )
    if kind := network_file_system(directory):
        yield Warning(
            f"{_where(backend)}: DIRECTORY is {directory}, on a network file system "
            f"({kind}).",
            hint="Its locks and syncs may not hold. Use a disk of this machine.",
            id=f"{APP}.W003",
        )


def _check_neighbours(backend: Checked, directory: Path) -> Iterator[CheckMessage]:
    here = os.path.realpath(directory)
    for other in _backends():
        # Told once per pair, by the later alias.
        if other.alias >= backend.alias or other.configuration.faults():
            continue
        if os.path.realpath(other.configuration.options.directory) == here:
            yield Error(
                f"TASKS[{other.alias!r}] and TASKS[{backend.alias!r}] share the "
                f"directory {directory}.",
                hint="Give each its own DIRECTORY, or use one alias with two queues.",
                id=f"{APP}.E005",
            )


def _check_values(backend: Checked, options: Options) -> Iterator[CheckMessage]:
    index = options.index_directory
    if index is not None and _is_within(index, options.directory):
        yield Error(
            f"{_where(backend)}: INDEX_DIRECTORY is {index}, inside the store.",
            hint="Backups of the store must not walk into the index.",
            id=f"{APP}.E007",
        )
    database = options.enqueue_on_commit
    if isinstance(database, str) and database not in conf.database_aliases():
        yield Error(
            f"{_where(backend)}: ENQUEUE_ON_COMMIT names {database!r}, which is not "
            f"in DATABASES.{nearest(database, conf.database_aliases())}",
            id=f"{APP}.E008",
        )
    for name, _ in options.queues:
        if backend.queues and name not in backend.queues:
            yield Warning(
                f"{_where(backend)}: QUEUES names {name!r}, which is not in "
                f"TASKS[{backend.alias!r}]['QUEUES'].{nearest(name, backend.queues)}",
                id=f"{APP}.W006",
            )


def check_commands(
    app_configs: Sequence[AppConfig] | None = None,  # noqa: ARG001 - Django's signature
    **_kwargs: Any,
) -> Iterator[CheckMessage]:
    """Warn of another ``runworker``: Django takes the first app's in silence."""
    for app in apps.get_app_configs():
        commands = find_commands(str(Path(app.path, "management")))
        if app.name != APP and "runworker" in commands:
            yield Warning(
                f"Both {APP} and {app.name} bring a command named runworker.",
                hint="manage.py nobroker_worker is always that of django_nobroker.",
                id=f"{APP}.W004",
            )


def check_frameworks(
    app_configs: Sequence[AppConfig] | None = None,  # noqa: ARG001 - Django's signature
    **_kwargs: Any,
) -> Iterator[CheckMessage]:
    """Warn of two Tasks frameworks: signals of the second one are never sent."""
    if HAS_OWN_FRAMEWORK and apps.is_installed("django_tasks"):
        yield Warning(
            "django_tasks is in INSTALLED_APPS, but this Django has its own tasks.",
            hint="Import from django.tasks, and remove django_tasks.",
            id=f"{APP}.W001",
        )


def check_deployment(
    app_configs: Sequence[AppConfig] | None = None,  # noqa: ARG001 - Django's signature
    **_kwargs: Any,
) -> Iterator[CheckMessage]:
    """Warn, with ``check --deploy``, of what is only fit for development."""
    for backend in _backends():
        if backend.configuration.faults():
            continue
        options = backend.configuration.options
        if not options.fsync:
            yield Warning(
                f"{_where(backend)}: FSYNC is off.",
                hint="A power cut may lose jobs that enqueue() has acknowledged.",
                id=f"{APP}.W005",
            )
        if options.file_mode & stat.S_IRWXO or _is_open(options.directory):
            yield Warning(
                f"{_where(backend)}: every user of this machine may read or write "
                f"{options.directory}.",
                hint="It holds the arguments of all jobs. chmod o-rwx, FILE_MODE.",
                id=f"{APP}.W002",
            )


def register_checks() -> None:
    """Register the checks that are not a backend's; for ``AppConfig.ready()``."""
    register(check_commands, Tags.compatibility)
    register(check_frameworks, Tags.compatibility)
    register(check_deployment, Tags.security, deploy=True)


def _backends() -> list[Checked]:
    return [one for one in task_backends.all() if isinstance(one, Checked)]


def _is_within(path: Path, other: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(other))


def _is_open(directory: Path) -> bool:
    try:
        return bool(directory.stat().st_mode & stat.S_IRWXO)
    except OSError:
        return False
