"""Two processes that take turns, call by call, in an order that a test chooses.

Each is a thread with a handle of its own. It stops before every system call until it
is told to go on, so only one of them runs at a time and every order can be had again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django_nobroker.engine.vfs import Vfs
from tests.faults.files import CALLS, Killed

#: So many turns are enough for anything; more means that nobody gets on.
MOST = 20_000


class Actor(Vfs):
    """One process: its system calls wait for their turn, until it is killed."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.error: BaseException | None = None
        self.ended = False
        self._go = threading.Semaphore(0)
        self._stopped = threading.Semaphore(0)
        self._killed = False
        self._thread: threading.Thread | None = None
        for name in CALLS:
            real = getattr(Vfs, name)
            if name in ("fsync", "fdatasync"):
                real = _skip
            setattr(self, name, self._through(name, real))

    def _through(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any, **named: Any) -> Any:
            if threading.current_thread() is self._thread and name != "close":
                if not self._killed:
                    self._wait()
                if self._killed:
                    raise Killed
                self.calls.append(name)
            return real(*arguments, **named)

        return made

    def _wait(self) -> None:
        self._stopped.release()
        self._go.acquire()

    def start(self, body: Callable[[], None], bury: Callable[[], None]) -> None:
        """Let it begin, up to its first call; ``bury`` frees what a dead one held."""

        def run() -> None:
            try:
                body()
            except Killed:
                bury()
            except BaseException as error:
                self.error = error
            self.ended = True
            self._stopped.release()

        self._thread = threading.Thread(target=run)
        self._thread.start()
        self._stopped.acquire()

    def step(self) -> None:
        """Let it make one call and run up to its next one."""
        self._go.release()
        self._stopped.acquire()

    def kill(self) -> None:
        """Let it die where it stands."""
        self._killed = True
        self.step()


def _skip(_fd: int) -> None:
    pass


def take_turns(
    actors: Sequence[Actor], order: Iterator[int], *, kill: tuple[int, int] | None
) -> int:
    """Run all to their end, and return how many turns there were.

    ``order`` says whose turn it is, and alternates when it has nothing more to say.
    ``kill`` is the number of an actor and the turn in which it dies.
    """
    turns = 0
    while True:
        alive = [actor for actor in actors if not actor.ended]
        if not alive:
            return turns
        if kill is not None and turns == kill[1] and not actors[kill[0]].ended:
            actors[kill[0]].kill()
        else:
            alive[next(order, turns) % len(alive)].step()
        turns += 1
        assert turns < MOST, "nobody gets on"
