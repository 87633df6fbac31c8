"""The options of a backend: names, defaults, meanings, and what is wrong with some.

Nothing here reads Django's settings: ``conf.py`` does, and hands them over.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from . import option_values as read
from .retry import BackoffPolicy

DAY = 86400.0
REDACTED = ("password", "passwd", "secret", "token", "api_key", "authorization")


def _option(reader: read.Reader[Any], text: str, default: Any) -> Any:
    return field(default=default, metadata={"read": reader, "help": text})


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """What holds for the jobs of one queue; times in seconds."""

    max_attempts: int = _option(
        read.whole_number(at_least=1), "deliveries before the dead letters", 5
    )
    visibility_timeout: float = _option(
        read.seconds(above=0), "seconds of a lease, renewed while the job runs", 30.0
    )
    backoff: BackoffPolicy = _option(  # noqa: RUF009 - it is a field()
        read.backoff(BackoffPolicy()),
        "delay n = base x factor^(n-1), at most max_delay, then jittered",
        BackoffPolicy(),
    )
    max_pending: int | None = _option(
        read.optional(read.whole_number(at_least=1)),
        "how many jobs may be ready, delayed or leased at once; None = no limit",
        None,
    )
    result_ttl: float = _option(
        read.seconds(), "seconds a finished job and its result are kept", DAY
    )
    dead_ttl: float | None = _option(
        read.optional(read.seconds()),
        "seconds a dead job is kept; None = until somebody acts",
        None,
    )


def _queues(value: object) -> tuple[tuple[str, Mapping[str, object]], ...]:
    if not isinstance(value, Mapping) or not all(
        isinstance(name, str) and isinstance(given, Mapping)
        for name, given in value.items()
    ):
        raise ValueError('must map names of queues to options, {"emails": {...}}.')
    return tuple(value.items())


def _test(value: object) -> Path | None:
    if not isinstance(value, Mapping) or not value.keys() <= {"DIRECTORY"}:
        raise ValueError('may hold "DIRECTORY" and nothing else.')
    try:
        return read.optional(read.path)(value.get("DIRECTORY"))
    except ValueError as error:
        raise ValueError(f'["DIRECTORY"] {error}') from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(QueueOptions):
    """All options of one backend, checked; hashable, so that handles can be kept.

    The fields of :class:`QueueOptions` hold for every queue that ``queues`` does
    not name.
    """

    directory: Path = field(metadata={"read": read.path, "help": "the store"})
    fsync: bool = _option(
        read.flag, "False: a power cut may lose what was acknowledged", default=True
    )
    queues: tuple[tuple[str, QueueOptions], ...] = _option(
        _queues, "options of single queues, by the queue's name", ()
    )
    index_directory: Path | None = _option(  # noqa: RUF009 - it is a field()
        read.optional(read.path), "where the index goes; None = shared memory", None
    )
    file_mode: int = _option(read.file_mode, "of every file made", 0o660)
    group: str | None = _option(
        read.optional(read.text), "of every file made; None = the process's", None
    )
    enqueue_on_commit: bool | str = _option(
        read.flag_or_alias,
        "True, or a database's alias: enqueue() waits for the transaction",
        default=False,
    )
    job_id_ttl: float = _option(
        read.seconds(), "seconds a finished job's id still blocks a second one", DAY
    )
    full_timeout: float = _option(
        read.seconds(), "seconds enqueue() waits for room in a full queue", 0.0
    )
    test: Path | None = _option(  # noqa: RUF009 - it is a field()
        _test, '{"DIRECTORY": ...} is used while tests run', None
    )
    admin_redact: tuple[str, ...] = _option(
        read.words, "argument names that the admin shows as ********", REDACTED
    )

    def for_queue(self, name: str) -> QueueOptions:
        """Return what holds for the queue ``name``."""
        for queue, options in self.queues:
            if queue == name:
                return options
        return self


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: which option, and a sentence without its subject."""

    option: str
    text: str

    def __str__(self) -> str:
        return f"{self.option} {self.text}"


class OptionsError(ValueError):
    """The options cannot be used; ``faults`` says why, one by one."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(" ".join(map(str, self.faults)))


def read_options(
    given: Mapping[str, object], default_directory: Path | None
) -> Options:
    """Check ``given`` (upper-case keys) and return it with all defaults filled in.

    Raises:
        OptionsError: with every fault, not only the first.
    """
    faults: list[Fault] = []
    values = _read(given, Options, "", faults)
    overrides = values.pop("queues", ())
    if "DIRECTORY" not in given:
        if default_directory is None:
            text = "is missing, and the settings have no BASE_DIR to put it in."
            faults.append(Fault("DIRECTORY", text))
        else:
            values["directory"] = default_directory
    shared = QueueOptions(
        **{name: values[name] for name in _names(QueueOptions) & values.keys()}
    )
    queues = tuple(
        (name, _for_queue(name, override, shared, faults))
        for name, override in overrides
    )
    if faults:
        raise OptionsError(faults)
    return Options(**values, queues=queues)


def _for_queue(
    name: str,
    given: Mapping[str, object],
    shared: QueueOptions,
    faults: list[Fault],
) -> QueueOptions:
    # What an override leaves out of BACKOFF comes from the backend's, as the rest.
    where = f'QUEUES["{name}"] '
    values = _read(given, QueueOptions, where, faults, backoff=shared.backoff)
    return replace(shared, **values)


def _names(kind: type[QueueOptions]) -> set[str]:
    return {option.name for option in fields(kind)}


def _read(
    given: Mapping[str, object],
    kind: type[QueueOptions],
    where: str,
    faults: list[Fault],
    backoff: BackoffPolicy | None = None,
) -> dict[str, Any]:
    known: dict[str, Field[Any]] = {o.name.upper(): o for o in fields(kind)}
    values: dict[str, Any] = {}
    for name, value in given.items():
        option = known.get(name)
        if option is None:
            faults.append(Fault(f"{where}{name}", _unknown(name, known)))
            continue
        reader = option.metadata["read"]
        if backoff is not None and option.name == "backoff":
            reader = read.backoff(backoff)
        try:
            values[option.name] = reader(value)
        except ValueError as error:
            faults.append(Fault(f"{where}{name}", str(error)))
    return values


def nearest(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean ...?" when a known name is close, else nothing."""
    spelled = {option.upper(): option for option in known}
    matches = difflib.get_close_matches(name.upper(), spelled, n=1, cutoff=0.5)
    return f" Did you mean {spelled[matches[0]]}?" if matches else ""


def _unknown(name: object, known: Iterable[str]) -> str:
    return f"is not an option.{nearest(str(name), known)}"
