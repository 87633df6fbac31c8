"""The admin's pages of queues and dead letters, made from what the engine tells.

A page reads through ``seam.Engine`` of each configured task backend that has one.
It imports no task, takes no lock and repairs nothing. Importing this package puts
the pages on the default admin site; another site registers the same classes.
"""

from __future__ import annotations

from .dead_letters import DeadJobAdmin
from .queues import QueueAdmin

__all__ = ["DeadJobAdmin", "QueueAdmin"]
