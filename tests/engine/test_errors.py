"""One tree of errors."""

from __future__ import annotations

import errno
import inspect
import pickle

import pytest

from django_nobroker.engine import errors
from django_nobroker.engine.errors import NobrokerError, StorageError, StoreFailedError

CLASSES = [
    one
    for _, one in inspect.getmembers(errors, inspect.isclass)
    if one.__module__ == errors.__name__
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_is_in_the_tree_and_says_what_to_do(kind):
    assert issubclass(kind, NobrokerError)
    assert kind.__doc__
    assert kind.__name__ in (errors.__doc__ or "")


def test_an_error_of_the_file_system_keeps_its_number_and_file():
    error = errors.storage_error(
        FileNotFoundError(errno.ENOENT, "No such file", "/x/y"), "The store is gone"
    )

    assert (error.errno, error.filename) == (errno.ENOENT, "/x/y")
    assert isinstance(error, OSError)
    assert str(error) == "[Errno 2] The store is gone: No such file: '/x/y'"


def test_an_error_of_ours_is_told_once():
    failed = StoreFailedError(errno.EIO, "A sync failed", "/x")

    assert errors.storage_error(failed, "The log could not be read") is failed


def test_errors_reach_another_process():
    error = StorageError(errno.ENOSPC, "Full", "/x")

    again = pickle.loads(pickle.dumps(error))

    assert (type(again), again.errno, again.filename) == (StorageError, 28, "/x")
