from __future__ import annotations

import sys
from types import ModuleType

import pytest
from django.utils.functional import SimpleLazyObject

from django_nobroker import task
from django_nobroker.admin.signatures import parameter_names


@task
def charge(customer, amount, /, currency="EUR", *more, note=""):
    """A task with every sort of parameter."""


@task(takes_context=True)
def with_context(context, customer):
    """A task whose first parameter is not an argument."""


def not_a_task(password):
    """A function that nobody declared to be a task."""


def test_the_names_are_those_of_the_positional_parameters():
    assert parameter_names(f"{__name__}.charge") == ["customer", "amount", "currency"]


def test_the_context_is_no_argument():
    assert parameter_names(f"{__name__}.with_context") == ["customer"]


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "charge",
        f"{__name__}.nothing",
        f"{__name__}.not_a_task",
        f"{__name__}.",
        "os.path.join",
        "\0.\ud800",
    ],
)
def test_what_is_no_loaded_task_has_no_names(kind):
    assert parameter_names(kind) == []


def test_no_module_is_imported_to_learn_a_name():
    assert "this" not in sys.modules

    assert parameter_names("this.task") == []

    assert "this" not in sys.modules


def test_an_object_that_loads_lazily_is_not_woken_up(monkeypatch):
    module = ModuleType("some_module")
    lazy = SimpleLazyObject(lambda: pytest.fail("it was woken up"))
    vars(module)["lazy"] = lazy
    monkeypatch.setitem(sys.modules, "some_module", module)

    assert parameter_names("some_module.lazy") == []


def test_a_module_that_loads_lazily_is_not_asked(monkeypatch):
    module = ModuleType("lazy_module")
    vars(module)["__getattr__"] = lambda name: pytest.fail("a lazy import")
    monkeypatch.setitem(sys.modules, "lazy_module", module)
    monkeypatch.setitem(sys.modules, "blocked_module", None)

    assert parameter_names("lazy_module.task") == []
    assert parameter_names("blocked_module.task") == []
