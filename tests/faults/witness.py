"""What a caller was told, kept outside of the store that crashes.

A job goes by a name that its caller chose before it enqueued it. An operation is noted
when it begins and, when it has returned, as acknowledged. From both follows what a job
may be after a crash at any moment: at least what was acknowledged, at most what had
begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

#: The state of a job that is not in the store.
ABSENT = "absent"


class Step(NamedTuple):
    """A job's new state: when the operation began, and when it was acknowledged."""

    state: str
    begun: int
    sure: int | None


class Expected(msgspec.Struct):
    """What may be found: by job the states that are right, and who comes together."""

    jobs: dict[str, list[str]]
    together: list[list[str]]


@dataclass
class Witness:
    """Notes what was asked for and what was answered; ``now`` tells the moment."""

    now: Callable[[], int] = lambda: 0
    steps: dict[str, list[Step]] = field(default_factory=dict)
    _together: list[list[str]] = field(default_factory=list)

    @contextmanager
    def expects(
        self, states: Mapping[str, str], *, durable: bool = True
    ) -> Iterator[None]:
        """Note an operation that brings jobs to new states."""
        begun = self.now()
        new = [name for name in states if name not in self.steps]
        if len(new) > 1:
            self._together.append(new)
        places = {}
        for name, state in states.items():
            known = self.steps.setdefault(name, [])
            places[name] = len(known)
            known.append(Step(state, begun, None))
        yield
        if durable:
            for name, place in places.items():
                step = self.steps[name][place]
                self.steps[name][place] = step._replace(sure=self.now())

    def at(self, moment: int) -> Expected:
        """Return what may be found after a crash at a moment."""
        jobs: dict[str, list[str]] = {}
        for name, steps in self.steps.items():
            begun = [step for step in steps if step.begun <= moment]
            states = [ABSENT]
            for step in begun:
                if step.sure is not None and step.sure <= moment:
                    states = []
                states.append(step.state)
            if begun:
                jobs[name] = states
        together = [
            names
            for names in self._together
            if all(name in jobs and jobs[name][0] == ABSENT for name in names)
            and all(len(jobs[name]) == 2 for name in names)
        ]
        return Expected(jobs, together)

    def finally_(self) -> Expected:
        """Return what may be found when all is over."""
        return self.at(1 << 60)
