"""``manage.py nobroker_worker``: ``runworker`` by a name that no other app takes."""

from __future__ import annotations

from .runworker import Command

__all__ = ["Command"]
