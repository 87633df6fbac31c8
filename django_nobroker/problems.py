"""What is wrong with a store: one sentence each, and the act that mends it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .engine import room, roster, setaside
from .engine.roster import WorkerEntry
from .engine.store import Store
from .engine.tables import Tables
from .engine.vfs import FLAGS
from .mounts import network_file_system
from .seam import ERROR, WARNING, Problem

#: A disk is nearly full when less than this is free beside what jobs still need,
#: or on a small disk less than this part of it.
_FEW_BYTES, _SMALL_PART = 64 * 1024 * 1024, 0.05
#: A worker that is alive but gave no sign of life for so many seconds is stopped.
_SILENCE = 12 * roster.BEAT


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What is wrong with a store; ``ok`` unless one of the problems is an error."""

    ok: bool
    problems: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> Health:
        """Return the health of a store with those problems."""
        found = tuple(problems)
        return cls(
            ok=all(one.severity != ERROR for one in found),
            problems=found,
        )

    def to_dict(self) -> dict[str, object]:
        """Return plain values, as JSON has them."""
        return {
            "ok": self.ok,
            "problems": [
                {"text": one.text, "hint": one.hint, "severity": one.severity}
                for one in self.problems
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """How the commands are spelt where the sentences are read."""

    work: Callable[[str], str]  # starts a worker for a queue
    verb: Callable[[str], str]  # any other subcommand


DJANGO = Commands(
    work=lambda _queue: "manage.py runworker",
    verb=lambda verb: f"manage.py nobroker {verb}",
)


def shell_commands(directory: str) -> Commands:
    """Return the commands of the console script for a store."""
    place = f"nobroker --dir {shlex.quote(directory)}"
    return Commands(
        work=lambda queue: f"{place} -q {shlex.quote(queue)} work MODULE:FUNCTION",
        verb=lambda verb: f"{place} {verb}",
    )


def health_of(store: Store, commands: Commands) -> Health:
    """Return how a store is, whoever may look at it; nothing is changed."""
    return Health.of(
        store.look(lambda tables: problems_of(store, tables, commands=commands))
    )


def problems_of(
    store: Store, tables: Tables, *, commands: Commands = DJANGO
) -> list[Problem]:
    """Return what is wrong right now, the worst first; empty when all is well."""
    crew = roster.alive(store.directory, store.vfs)
    return [
        *_failure(store),
        *_unserved(store, tables, crew, commands),
        *_disk(store, tables, commands),
        *_damage(tables, commands),
        *_silent(store, crew),
        *_torn(store),
        *_set_aside(store, commands),
        *_unknown(tables),
        *_network(store),
    ]


def _failure(store: Store) -> Iterator[Problem]:
    if store.failed:
        yield Problem(
            text="A sync of the log failed, so nothing is acknowledged any more.",
            hint="Check the disk, then remount it or restart the machine.",
        )


def _unserved(
    store: Store, tables: Tables, crew: list[WorkerEntry], commands: Commands
) -> Iterator[Problem]:
    expired = tables.expired(store.clock.boot())
    due = {
        name: tables.counts(number)[0] + expired.get(number, 0)
        for number, name in enumerate(tables.names.queues)
    }
    waiting = {
        name: jobs
        for name, jobs in sorted(due.items())
        if jobs and not any(one.serves(name) for one in crew)
    }
    if not waiting:
        return
    jobs, queue = sum(waiting.values()), next(iter(waiting))
    count = "1 job is" if jobs == 1 else f"{jobs} jobs are"
    if not crew:
        text = f"{count} due and no worker is running."
    else:
        names = ", ".join(waiting)
        text = f"{count} due and no running worker takes the jobs of {names}."
    yield Problem(text=text, hint=f"Start one: `{commands.work(queue)}`.")


def _disk(store: Store, tables: Tables, commands: Commands) -> Iterator[Problem]:
    fd = store.vfs.open(store.directory, FLAGS)
    try:
        free, whole = store.vfs.free_bytes(fd), store.vfs.whole_bytes(fd)
    finally:
        store.vfs.close(fd)
    spare = free - tables.live_jobs() * room.PER_JOB - room.MARGIN
    if spare < min(_FEW_BYTES, int(_SMALL_PART * whole)):
        then = "soon no job can be enqueued" if spare > 0 else "no job can be enqueued"
        yield Problem(
            text=f"The disk is nearly full, {_size(free)} are free: {then}.",
            hint=f"Free some space, or drop finished jobs: `{commands.verb('compact')}`.",
        )


def _damage(tables: Tables, commands: Commands) -> Iterator[Problem]:
    if count := len(tables.meta.damage):
        yield Problem(
            text=f"{count} range(s) of the log are unreadable.",
            hint=(
                "Check the disk; what can be read around them stays in use. "
                f"`{commands.verb('verify')}` tells which jobs they hit."
            ),
        )


def _silent(store: Store, crew: list[WorkerEntry]) -> Iterator[Problem]:
    now = store.clock.wall()
    for one in crew:
        silence = now - one.beat_at
        if silence > _SILENCE:
            yield Problem(
                text=f"The worker {one.id} gave no sign of life for {silence:.0f} seconds.",
                hint=f"It is stopped or hangs: look at process {one.pid} on {one.host}.",
                severity=WARNING,
            )


def _torn(store: Store) -> Iterator[Problem]:
    if store.torn:
        yield Problem(
            text=f"{store.torn} bytes at the end of the log are unfinished.",
            hint="The next process that writes cuts them off and keeps a copy in set-aside.",
            severity=WARNING,
        )


def _set_aside(store: Store, commands: Commands) -> Iterator[Problem]:
    if count := len(setaside.listing(store.directory, store.vfs)):
        yield Problem(
            text=f"{count} file(s) in set-aside hold bytes that a repair took out of the log.",
            hint=(
                f"See `{commands.verb('recover')}`; "
                "delete the files when nobody needs them any more."
            ),
            severity=WARNING,
        )


def _unknown(tables: Tables) -> Iterator[Problem]:
    if unknown := tables.meta.unknown:
        yield Problem(
            text=(
                f"{sum(unknown.values())} record(s) of operations that this version does "
                f"not know were skipped: {', '.join(sorted(unknown))}."
            ),
            hint="A newer version wrote them: upgrade django-nobroker here.",
            severity=WARNING,
        )


def _network(store: Store) -> Iterator[Problem]:
    if kind := network_file_system(Path(store.directory)):
        yield Problem(
            text=f"The store is on a network file system ({kind}), where locks are not reliable.",
            hint="Move it to a local disk of the machine that runs the workers.",
            severity=WARNING,
        )


def _size(count: int) -> str:
    return f"{count / 1024**2:.0f} MiB" if count >= 1024**2 else f"{count} bytes"
