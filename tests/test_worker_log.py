"""The worker's log lines are seen, once."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from io import StringIO

import pytest

from django_nobroker.worker_log import visible_log

log = logging.getLogger("django_nobroker")


@contextmanager
def logging_with(*handlers, propagate=False):
    """Put the handlers in place of what pytest has installed for itself."""
    before = log.handlers, log.propagate
    log.handlers, log.propagate = list(handlers), propagate
    try:
        yield
    finally:
        log.handlers, log.propagate = before


def printed(verbosity=1):
    stream = StringIO()
    with visible_log(stream, verbosity):
        worker = logging.getLogger("django_nobroker.worker")
        worker.debug("details")
        worker.info("news")
        worker.warning("trouble")
    return [line.split(None, 3)[3] for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("verbosity", "lines"),
    [
        (0, ["trouble"]),
        (1, ["news", "trouble"]),
        (2, ["details", "news", "trouble"]),
        (3, ["details", "news", "trouble"]),
    ],
)
def test_without_any_handler_the_lines_are_printed(verbosity, lines):
    with logging_with():
        assert printed(verbosity) == lines


def test_a_line_has_its_time_and_level():
    stream = StringIO()
    with logging_with(), visible_log(stream, 1):
        log.info("news")
    date, _time, level, text = stream.getvalue().split()

    assert len(date.split("-")) == 3
    assert (level, text) == ("INFO", "news")


def test_nothing_is_left_behind():
    before = log.level
    with logging_with():
        printed(3)
        assert (log.handlers, log.level) == ([], before)


def test_a_handler_of_the_project_is_enough():
    with logging_with(logging.StreamHandler(StringIO())):
        assert printed() == []


def test_a_handler_at_the_root_is_enough():
    with logging_with(propagate=True):
        assert logging.getLogger().handlers
        assert printed() == []


def test_a_handler_that_lets_nothing_through_is_not():
    handler = logging.StreamHandler(StringIO())
    handler.addFilter(lambda record: False)
    with logging_with(handler):
        assert printed() == ["news", "trouble"]
