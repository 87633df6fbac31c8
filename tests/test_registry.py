"""Only tasks are found by their path, and only those that a worker would find."""

from __future__ import annotations

import sys

import pytest

from django_nobroker import registry, task
from django_nobroker.compat import InvalidTask
from django_nobroker.registry import UnknownTaskError
from tests import sample_tasks


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return a function that writes an importable module and returns its name."""
    monkeypatch.syspath_prepend(tmp_path)
    names = []

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        names.append(name)
        return name

    yield write
    for name in names:
        sys.modules.pop(name, None)


def hidden():
    """Stands where its task should be."""


hidden_task = task(hidden)


def test_a_task_is_found_by_its_path():
    assert registry.resolve("tests.sample_tasks.add") is sample_tasks.add


def test_a_task_of_django_is_found_as_well():
    assert registry.resolve("tests.sample_tasks.plain") is sample_tasks.plain


def test_a_module_is_imported_when_a_task_of_it_is_needed(module):
    name = module(
        "lazy_tasks",
        "from django_nobroker import task\n@task\ndef f(): pass\n",
    )

    assert registry.resolve(f"{name}.f").module_path == "lazy_tasks.f"


@pytest.mark.parametrize(
    "path",
    [
        "tests.sample_tasks.not_a_task",
        "tests.sample_tasks.trace",
        "tests.sample_tasks.nothing",
        "tests.no_such_module.f",
        "no_such_package.tasks.f",
        "os.system",
        "builtins.exec",
        "subprocess.run",
        "add",
        "",
        ".",
        "..add",
        "tests..add",
        "tests.sample_tasks.add.func",
        "tests.sample tasks.add",
        "tests/sample_tasks.add",
    ],
)
def test_nothing_else_is_found(path):
    with pytest.raises(UnknownTaskError):
        registry.resolve(path)


def test_an_alias_of_a_task_is_not_its_path(module):
    """Its own path is; otherwise one task would have many names in the log."""
    name = module("alias_tasks", "from tests.sample_tasks import add as plus\n")

    with pytest.raises(UnknownTaskError):
        registry.resolve(f"{name}.plus")


def test_a_fault_of_the_module_is_not_an_unknown_task(module):
    name = module("broken_tasks", "import a_dependency_that_is_missing\n")

    with pytest.raises(ModuleNotFoundError, match="a_dependency_that_is_missing"):
        registry.resolve(f"{name}.f")


def test_a_task_that_a_worker_would_find_is_reachable():
    registry.check_reachable(sample_tasks.add)
    registry.check_reachable(sample_tasks.add.using(priority=5))
    registry.check_reachable(sample_tasks.plain)


def test_a_task_hidden_behind_its_function_is_not():
    with pytest.raises(InvalidTask, match="would not find"):
        registry.check_reachable(hidden_task)


def test_a_task_of_main_is_not(monkeypatch):
    function = type(hidden)(hidden.__code__, {}, "f")
    function.__module__ = "__main__"
    monkeypatch.setattr(sys.modules["__main__"], "f", task(function), raising=False)

    with pytest.raises(InvalidTask, match="would not find __main__"):
        registry.check_reachable(sys.modules["__main__"].f)


def test_a_task_behind_another_of_its_name_is_not(module):
    name = module(
        "twice_tasks",
        "from django_nobroker import task\n"
        "@task\ndef f(): pass\n"
        "first = f\n"
        "@task\ndef f(): pass\n",
    )
    registry.resolve(f"{name}.f")

    with pytest.raises(InvalidTask, match="another function"):
        registry.check_reachable(sys.modules[name].first)
