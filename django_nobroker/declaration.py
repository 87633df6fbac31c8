"""The ``task`` decorator and the kind of task that it makes.

A task holds what its author decided; it says nothing about when or where a job of
it runs. Options left at None are those of the queue at the time of the enqueue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    overload,
    runtime_checkable,
)

from django.db import transaction
from django.utils import timezone

from . import results
from .compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_QUEUE_NAME,
    GenericTask,
    InvalidTask,
    Task,
    TaskResult,
)
from .job_context import JobContext
from .options import nearest
from .retry import BackoffPolicy
from .task_options import Exceptions, checked

P = ParamSpec("P")
R = TypeVar("R")

Call = tuple[Sequence[Any], Mapping[str, Any]]  # positional, and by name


@runtime_checkable
class EnqueuesMore(Protocol):
    """What a backend offers beyond Django's: enqueueing many, and on commit."""

    def enqueue_many(
        self, task: Task[P, R], calls: Sequence[Call]
    ) -> list[TaskResult[P, R]]:
        """Enqueue one job per call: all of them, or none."""

    def enqueue_on_commit(
        self, task: Task[P, R], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TaskResult[P, R]:
        """Enqueue when the current transaction commits."""


@dataclass(frozen=True, kw_only=True)
class NobrokerTask(GenericTask[P, R], Generic[P, R]):
    """A task of Django's with retries, a time limit and an id for its next job.

    It works on every backend, so that tests may put Django's dummy or immediate
    one in place; those know nothing of the fields below.
    """

    max_attempts: int | None = None  # deliveries before the dead letters
    # What differs from the queue's backoff; a dict, so it can be pickled.
    backoff: dict[str, float] | None = field(default=None, hash=False)
    retry_on: Exceptions | None = None  # only these are retried; None = all
    no_retry_on: Exceptions = ()  # these are not, even if retry_on names them
    timeout: float | None = None  # seconds of one attempt
    job_id: str | None = field(default=None, compare=False)
    # A delay given as a timedelta counts from the enqueue, not from using().
    delay: timedelta | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Refuse wrong options where the task is declared, not where it runs.

        Raises:
            InvalidTask: if one of them is wrong.
        """
        for name, value in checked(self).items():
            object.__setattr__(self, name, value)
        # Not super(): Django's dataclass has slots, and is another class than the
        # one that a zero-argument super() would look for.
        Task.__post_init__(self)

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | timedelta | None = None,
        backend: str | None = None,
        job_id: str | None = None,
    ) -> NobrokerTask[P, R]:
        """Return this task with other options for the jobs enqueued through it.

        ``run_after`` may be a delay; it counts from the enqueue. A second job with
        the same ``job_id`` is not enqueued: the result is that of the first.
        """
        given = {
            "priority": priority,
            "queue_name": queue_name,
            "backend": backend,
            "job_id": job_id,
        }
        changes: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
        if isinstance(run_after, timedelta):
            changes |= {"run_after": _after(run_after), "delay": run_after}
        elif run_after is not None:
            changes |= {"run_after": run_after, "delay": None}
        return replace(self, **changes)

    def enqueue_on_commit(self, *args: P.args, **kwargs: P.kwargs) -> TaskResult[P, R]:
        """Enqueue after the current transaction commits; at once if there is none.

        The result has its final id and ``enqueued_at`` None. Arguments are checked
        now; a failure to write after the commit is raised by the commit.
        """
        backend = self.get_backend()
        if isinstance(backend, EnqueuesMore):
            return backend.enqueue_on_commit(self, args, kwargs)
        enqueue = partial(Task.enqueue, self, *args, **kwargs)
        if not transaction.get_connection().in_atomic_block:
            return enqueue()
        transaction.on_commit(enqueue)
        return results.promised(self, results.new_id(), list(args), dict(kwargs))

    def enqueue_many(self, calls: Iterable[Call]) -> list[TaskResult[P, R]]:
        """Enqueue one job per pair of ``(args, kwargs)``: all of them, or none.

        One transaction and one sync of the log for all of them.
        """
        backend = self.get_backend()
        pairs = [_pair(number, call) for number, call in enumerate(calls)]
        if self.job_id is not None and len(pairs) > 1:
            raise InvalidTask("job_id names one job; it cannot be that of many.")
        if isinstance(backend, EnqueuesMore):
            return backend.enqueue_many(self, pairs)
        return [Task.enqueue(self, *args, **kwargs) for args, kwargs in pairs]

    def backoff_over(self, default: BackoffPolicy) -> BackoffPolicy | None:
        """Return the task's own backoff, completed by ``default``; None = no own."""
        return None if self.backoff is None else replace(default, **self.backoff)


def _after(delay: timedelta) -> datetime:
    try:
        return timezone.now() + delay
    except OverflowError as error:
        raise InvalidTask(f"run_after is too far away: {delay}.") from error


def _pair(number: int, call: object) -> Call:
    match call:
        case [list() | tuple() as args, Mapping() as kwargs]:
            return args, kwargs
    raise TypeError(
        f"enqueue_many() takes pairs of (args, kwargs); number {number} is "
        f"{repr(call)[:80]}."
    )


_OPTIONS = ("max_attempts", "backoff", "retry_on", "no_retry_on", "timeout")


@overload
def task(function: Callable[P, R]) -> NobrokerTask[P, R]: ...
@overload
def task(
    *,
    takes_context: Literal[True],
    priority: int = 0,
    queue_name: str = ...,
    backend: str = ...,
    max_attempts: int | None = None,
    backoff: Mapping[str, float] | BackoffPolicy | None = None,
    retry_on: type[BaseException] | Exceptions | None = None,
    no_retry_on: type[BaseException] | Exceptions = (),
    timeout: float | None = None,
) -> Callable[[Callable[Concatenate[JobContext, P], R]], NobrokerTask[P, R]]: ...
@overload
def task(
    *,
    takes_context: Literal[False] = False,
    priority: int = 0,
    queue_name: str = ...,
    backend: str = ...,
    max_attempts: int | None = None,
    backoff: Mapping[str, float] | BackoffPolicy | None = None,
    retry_on: type[BaseException] | Exceptions | None = None,
    no_retry_on: type[BaseException] | Exceptions = (),
    timeout: float | None = None,
) -> Callable[[Callable[P, R]], NobrokerTask[P, R]]: ...
def task(
    function: Callable[..., Any] | None = None,
    *,
    priority: int = 0,
    queue_name: str = DEFAULT_TASK_QUEUE_NAME,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    takes_context: bool = False,
    **options: Any,
) -> Any:
    """Make a task of a module-level function.

    ``priority`` is -100 to 100, higher first. ``max_attempts``, ``backoff`` (what
    differs from the queue's: ``base``, ``factor``, ``max_delay``, ``jitter``),
    ``retry_on`` and ``no_retry_on`` (exception classes), ``timeout`` (seconds)
    say what happens when it fails. With ``takes_context`` the function's first
    argument, ``context``, is a :class:`~django_nobroker.job_context.JobContext`.

    Raises:
        InvalidTask: if the function or an option is not fit for it.
    """
    if unknown := options.keys() - _OPTIONS:
        name = min(unknown)
        raise TypeError(f"task() has no option {name!r}.{nearest(name, _OPTIONS)}")

    def declare(function: Callable[..., Any]) -> NobrokerTask[..., Any]:
        # Always this class, whatever the backend's is: a test that swaps in Django's
        # own backends must still be able to import the module.
        return NobrokerTask(
            func=function,
            priority=priority,
            queue_name=queue_name,
            backend=backend,
            takes_context=takes_context,
            run_after=None,
            **options,
        )

    return declare if function is None else declare(function)
