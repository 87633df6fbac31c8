"""One task per behaviour, for the tests of everything that handles tasks."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import django
from django.contrib.auth.models import User
from django.db import transaction

from django_nobroker import Reject, Retry, task

if django.VERSION >= (6, 0):
    from django.tasks import task as framework_task
else:
    from django_tasks import task as framework_task

trace: list[Any] = []
word: ContextVar[str] = ContextVar("word", default="unset")


@task
def add(a, b=0):
    return a + b


@task(queue_name="emails", priority=7, max_attempts=2)
def echo(*args, **kwargs):
    return {"args": args, "kwargs": kwargs}


@framework_task
def plain(value):
    return value


@task
async def aadd(a, b):
    await asyncio.sleep(0)
    return a + b


@task(timeout=0.05)
async def hang():
    await asyncio.sleep(30)


@task(timeout=0.05)
async def stubborn():
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        return "all the same"


@task(timeout=0.05, no_retry_on=(ValueError,))
async def untidy():
    try:
        await asyncio.sleep(30)
    finally:
        raise ValueError("while tidying up")


@task(timeout=30)
async def own_timeout():
    raise TimeoutError("the mail server's")


@task(timeout=0.000001)
def slow():
    return threading.Event().wait(0.01)


@task(takes_context=True)
def attempts(context, times):
    trace.append((context.attempt, list(context.task_result.worker_ids)))
    if context.attempt < times:
        raise ValueError(f"attempt {context.attempt}")
    return context.attempt


@task(takes_context=True)
def extend(context, seconds):
    context.extend(seconds)


@task(max_attempts=3, backoff={"base": 8, "jitter": 0})
def fail(text="oops"):
    raise ValueError(text)


@task(max_attempts=1)
def fail_once(kind):
    error = RAISED[kind]()
    raise error


@task
def retry(after=None):
    raise Retry("not yet", after=after)


@task
def reject():
    raise Reject("no such customer")


@task(retry_on=(OSError,), no_retry_on=FileNotFoundError)
def picky(kind):
    error = RAISED[kind]()
    raise error


@task
def unserialisable():
    return {"when": object()}


@task
def note(value):
    trace.append(value)


@task
def note_surroundings():
    from django.utils import timezone, translation

    trace.append(
        (translation.get_language(), timezone.get_current_timezone_name(), word.get())
    )
    translation.activate("de")
    timezone.activate("Asia/Tokyo")
    word.set("leaked")


@task
def chain(depth):
    if depth:
        chain.enqueue(depth - 1)
    return depth


@task
def interrupt():
    raise KeyboardInterrupt


@task(takes_context=True)
def thread(context):
    trace.append(threading.get_ident())


@task
def create_user(username):
    return User.objects.create(username=username).pk


@task
def leave_open(username, how):
    if how == "atomic":
        transaction.atomic().__enter__()
    else:
        transaction.set_autocommit(False)
    User.objects.create(username=username)


@task
def break_transaction():
    transaction.set_autocommit(False)
    User.objects.create(username="ada")
    User.objects.create(username="ada")


@task
async def acount_users():
    return await User.objects.acount()


class UnspeakableError(Exception):
    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


class TwoArgumentsError(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


RAISED = {
    "exit": lambda: SystemExit(3),
    "interrupt": lambda: KeyboardInterrupt("now"),
    "cancelled": lambda: asyncio.CancelledError("all over"),
    "generator": GeneratorExit,
    "unspeakable": UnspeakableError,
    "two": lambda: TwoArgumentsError("one", "two"),
    "surrogate": lambda: ValueError("half \ud800 pair \x00"),
    "group": lambda: ExceptionGroup("many", [ValueError("a"), KeyError("b")]),
    "huge": lambda: ValueError("x" * 20_000_000),
    "value": lambda: ValueError("v"),
    "os": lambda: PermissionError("o"),
    "missing": lambda: FileNotFoundError("m"),
}


def not_a_task():
    trace.append("not_a_task ran")


@task(max_attempts=2, backoff={"base": 0})
def wait_for(started, go):
    """Make the file ``started``, then wait until there is a file ``go``."""
    Path(started).touch()
    while not Path(go).exists():
        time.sleep(0.01)
    return "went"


@task(max_attempts=2, backoff={"base": 0})
def die():
    os.kill(os.getpid(), signal.SIGKILL)
