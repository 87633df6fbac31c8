"""The commands ``health`` and ``verify``."""

from __future__ import annotations

from django_nobroker import problems
from django_nobroker.engine.scan import Finding
from django_nobroker.engine.verification import VerificationReport
from django_nobroker.seam import ERROR

from . import exit_codes
from .command import Call, Command
from .moments import counted, size, span
from .table import Column


def _health(call: Call) -> int:
    with call.place.look(call.queue) as queue:
        health = problems.health_of(queue.opened(), call.commands)
    if call.screen.as_json:
        call.screen.values(health.to_dict())
    elif not health.problems:
        call.screen.line("ok: nothing is wrong.")
    else:
        for one in health.problems:
            tell = call.screen.alarm if one.severity == ERROR else call.screen.line
            tell(f"{one.severity}: {one.text} {one.hint}".rstrip())
        if health.ok:
            call.screen.line("ok: nobody has to act now.")
    return exit_codes.OK if health.ok else exit_codes.ERROR


def _verify(call: Call) -> int:
    with call.place.look(call.queue) as queue, call.progress("Verifying") as progress:
        report = queue.verify(progress=progress)
    if call.screen.as_json:
        call.screen.values(report.to_dict())
    else:
        _tell(call, report)
    return exit_codes.OK if report.ok else exit_codes.ERROR


def _tell(call: Call, report: VerificationReport) -> None:
    log = report.log
    looked = (
        f"{counted(log.records, 'record')} in {counted(log.segments, 'segment')} "
        f"({size(log.end - log.start)}) and {counted(report.jobs, 'job')} in "
        f"{span(report.seconds)}"
    )
    if report.ok:
        call.screen.line(f"ok: {looked}; the index is what the log says.")
    else:
        found = counted(len(report.errors) + report.more, "error")
        call.screen.alarm(f"{found} in {looked}.")
        _findings(call, report.errors)
        if report.more:
            call.screen.line(f"... and {report.more} more.")
        if report.mend:
            call.screen.line(
                f"The index is mended by `{call.commands.verb(report.mend)}`."
            )
    if log.notes:
        call.screen.line("Worth knowing:")
        _findings(call, log.notes)


def _findings(call: Call, findings: tuple[Finding, ...]) -> None:
    columns = [
        Column("kind"),
        Column("from", right=True),
        Column("to", right=True),
        Column("job"),
        Column("what"),
    ]
    call.screen.table(
        columns,
        [[one.kind, one.start, one.end, one.job or "-", one.text] for one in findings],
    )


COMMANDS = (
    Command(
        name="verify",
        help="Check every record of the log, and that the index is what they say.",
        run=_verify,
        more="Others go on meanwhile and nothing is changed. Exit code 1: damage.",
    ),
    Command(
        name="health",
        help="Tell what is wrong, and the command that mends it; for a monitor.",
        run=_health,
        more="Exit code 1: somebody has to act, because jobs are due and no worker is "
        "alive, a disk is nearly full, the store has failed, or records are damaged.",
    ),
)
