"""What a task that asks for its context gets: the attempt that it is part of."""

from __future__ import annotations

from dataclasses import dataclass

from . import limits, seam
from .compat import TaskContext


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext(TaskContext):  # type: ignore[misc, type-arg]
    """Django's ``TaskContext`` (``task_result``) with the lease of the attempt."""

    # The stubs have it generic and not frozen, unlike the class itself.

    lease: seam.Attempt

    @property
    def attempt(self) -> int:
        """The number of this attempt: 1 on the first, and again after a requeue."""
        return self.lease.number

    def extend(self, seconds: float) -> None:
        """Keep the job for at least ``seconds`` from now.

        Raises:
            NotLeasedError: if another worker has been given the job.
            TypeError, ValueError: if ``seconds`` is not a number above 0.
        """
        self.lease.extend(limits.seconds(seconds, "seconds", above=0))
