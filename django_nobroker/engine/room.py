"""Room on the disk for finishing what is in the queue.

A disk that enqueues have filled would hold jobs that nobody can lease or
complete any more. So enqueues stop while there is room left for the records
that every waiting job still needs; completions never ask.
"""

from __future__ import annotations

import errno

from .control import END, OWED, OWED_IS_KNOWN, ControlPage
from .errors import StorageError
from .record import Ack, Dead, Discard, Enqueue, Requeue
from .vfs import Vfs

#: What a job still writes, as a rule: a lease and an acknowledgement, and some more.
PER_JOB = 512
MARGIN = 64 * 1024
#: The disk is asked again after so much of the log at the latest.
_LONGEST_STEP = 1 << 20


class Room:
    """Counts live jobs in the control page and asks the disk now and then."""

    def __init__(self, control: ControlPage, vfs: Vfs) -> None:
        self._words = control.words
        self._vfs = vfs
        #: Up to this position of the log the disk need not be asked.
        self.checked_to = -1

    def check(self, descriptor: int, size: int) -> None:
        """Raise ``StorageError`` unless ``size`` bytes of new jobs may be written."""
        end = self._words[END] + size
        if end <= self.checked_to:
            return
        free = self._vfs.free_bytes(descriptor)
        spare = free - self._words[OWED] * PER_JOB - MARGIN
        if size > spare:
            self.checked_to = -1
            msg = (
                f"The disk is nearly full ({free} bytes free): the rest is kept for "
                f"finishing the {self._words[OWED]} jobs that are in the queue"
            )
            raise StorageError(errno.ENOSPC, msg)
        # Others write to the disk too, so only a part of what is spare is counted on.
        self.checked_to = end + min(spare // 8, _LONGEST_STEP)

    def take(self, jobs: int) -> None:
        """Count ``jobs`` more that are to be finished, fewer if negative."""
        self._words[OWED] = max(0, self._words[OWED] + jobs)

    @property
    def is_known(self) -> bool:
        """Whether the live jobs were counted since the last recovery."""
        return bool(self._words[OWED_IS_KNOWN])

    def know(self, jobs: int) -> None:
        """Set the number of live jobs."""
        self._words[OWED] = jobs
        self._words[OWED_IS_KNOWN] = 1


#: By how much an operation changes the number of jobs to be finished.
OWED_BY: dict[type, int] = {Enqueue: 1, Requeue: 1, Ack: -1, Dead: -1, Discard: -1}
