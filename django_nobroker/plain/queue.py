"""The plain face: a named queue of a store, for scripts without Django.

It turns Python values into jobs and back; every decision is the engine's.
"""

from __future__ import annotations

from .consuming import Consuming
from .inspecting import Inspecting
from .job import T
from .operating import Operating
from .producing import Producing
from .retaining import Retaining


class Queue(Producing[T], Consuming[T], Inspecting[T], Retaining[T], Operating[T]):
    """A named queue in the store at ``path``; the directory is made if missing.

    Any number of threads and processes of one machine may open it. When
    ``enqueue`` returns, the job is on disk; with ``fsync=False`` it is only handed
    to the operating system, and a power cut may lose it.
    """
