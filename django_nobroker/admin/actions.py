"""What can be done to dead letters, and the doing of it.

An action moves what is dead and skips the rest with a reason. So doing it twice, or
doing it to what somebody else has dealt with meanwhile, changes nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from django_nobroker import registry
from django_nobroker.exceptions import JobNotFoundError
from django_nobroker.seam import Engine, JobView, Requeued, State

from . import audit

Obstacle = Callable[[JobView], str]
Move = Callable[[Engine, list[str], str], Requeued]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One verb with its texts; ``move`` is what the engine is asked to do."""

    name: str  # the value of the form's field ``action``
    permission: str
    label: str | Promise
    question: str | Promise  # with count, as are the next two
    done: str | Promise
    not_done: str | Promise
    entry: str | Promise  # in the admin's log
    flag: int
    obstacle: Obstacle  # why it cannot be done to this dead job; "" = it can
    move: Move


def _task_obstacle(job: JobView) -> str:
    """Return why running ``job`` again is bound to fail, if its task is gone.

    Only an action asks this: it imports the task's module, and no page does that.
    """
    if job.kind is None:
        return ""
    try:
        registry.resolve(job.kind)
    except registry.UnknownTaskError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever a foreign module raises.
        return _("its task cannot be loaded: %(error)s") % {"error": repr(error)}
    return ""


REQUEUE = Action(
    name="requeue",
    permission="requeue_job",
    label=gettext_lazy("Requeue"),
    question=ngettext_lazy(
        "%(count)d job will be run again, with all its attempts before it:",
        "%(count)d jobs will be run again, with all their attempts before them:",
        "count",
    ),
    done=ngettext_lazy(
        "%(count)d job was requeued.", "%(count)d jobs were requeued.", "count"
    ),
    not_done=ngettext_lazy(
        "%(count)d job was not requeued:",
        "%(count)d jobs were not requeued:",
        "count",
    ),
    entry=gettext_lazy("Requeued."),
    flag=audit.CHANGE,
    obstacle=_task_obstacle,
    move=lambda engine, job_ids, by: engine.requeue(job_ids, by=by),
)

DISCARD = Action(
    name="discard",
    permission="discard_job",
    label=gettext_lazy("Discard"),
    question=ngettext_lazy(
        "%(count)d job will be thrown away and never run again:",
        "%(count)d jobs will be thrown away and never run again:",
        "count",
    ),
    done=ngettext_lazy(
        "%(count)d job was discarded.", "%(count)d jobs were discarded.", "count"
    ),
    not_done=ngettext_lazy(
        "%(count)d job was not discarded:",
        "%(count)d jobs were not discarded:",
        "count",
    ),
    entry=gettext_lazy("Discarded."),
    flag=audit.DELETION,
    obstacle=lambda _job: "",
    move=lambda engine, job_ids, by: engine.discard(job_ids, by=by),
)

ACTIONS = {action.name: action for action in (REQUEUE, DISCARD)}


STATES: dict[State, str | Promise] = {
    State.READY: gettext_lazy("waiting"),
    State.LEASED: gettext_lazy("running"),
    State.DONE: gettext_lazy("done"),
    State.DEAD: gettext_lazy("dead"),
    State.DISCARDED: gettext_lazy("discarded"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What an action was asked to be done to: jobs that it can move, and the others."""

    action: Action
    jobs: tuple[JobView, ...]
    skipped: dict[str, str]  # the reason, by id

    @classmethod
    def of(cls, engine: Engine, action: Action, job_ids: Iterable[str]) -> Selection:
        """Look every id up once, in the given order."""
        jobs: list[JobView] = []
        skipped: dict[str, str] = {}
        for job_id in dict.fromkeys(job_ids):
            try:
                job = engine.job(job_id).job
            except JobNotFoundError:
                skipped[job_id] = _("it is not in the store")
                continue
            if reason := _not_dead(job) or action.obstacle(job):
                skipped[job_id] = reason
            else:
                jobs.append(job)
        return cls(action=action, jobs=tuple(jobs), skipped=skipped)

    def move(self, engine: Engine, *, by: str) -> Requeued:
        """Do it, and tell what became of all.

        The engine may discard a job that only waits; this page must not. Only what
        was dead a moment ago is handed on.
        """
        if not self.jobs:
            return Requeued(skipped=self.skipped)
        moved = self.action.move(engine, [job.id for job in self.jobs], by)
        return Requeued(
            requeued=moved.requeued, skipped={**self.skipped, **moved.skipped}
        )


def _not_dead(job: JobView) -> str:
    if job.state is State.DEAD:
        return ""
    return _("it is not dead, it is %(state)s") % {"state": STATES[job.state]}
