"""Exit codes, errors of one line, and the streams that a shell connects."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points

import pytest

import django_nobroker
from django_nobroker import Queue
from django_nobroker.cli import grammar
from tests.cli.conftest import ROOT, snapshot

PATIENCE = 30.0
READING = [
    ("stats",),
    ("list",),
    ("show", "a"),
    ("dlq",),
    ("inspect",),
    ("verify",),
    ("health",),
    ("rebuild-index",),
    ("backup", "../copy"),
]
CHANGING = [
    ("dlq", "--requeue"),
    ("ack", "a"),
    ("nack", "a"),
    ("recover",),
    ("compact",),
    ("purge", "--yes"),
]


def test_without_a_command_it_helps_and_ends_with_2(nobroker):
    ran = nobroker()

    assert (ran.code, ran.out) == (2, "")
    assert all(name in ran.err for name in grammar.COMMANDS)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("list", "--state", "nonsense"),
        ("list", "--limit", "0"),
        ("enqueue",),
        ("enqueue", "1", "--priority", "40000"),
        ("enqueue", "1", "--delay", "nan"),
        ("-q", "a\nb", "stats"),
        ("work", "no_function"),
        ("purge", "--older-than", "soon"),
        ("inspect", "--from", "-1"),
    ],
)
def test_a_wrong_command_line_ends_with_2_and_makes_nothing(nobroker, here, arguments):
    ran = nobroker(*arguments)

    assert (ran.code, ran.out) == (2, "")
    assert "usage:" in ran.err
    assert list(here.iterdir()) == []


def test_the_version_is_that_of_the_package(nobroker):
    assert nobroker("--version") == (0, f"nobroker {django_nobroker.__version__}\n", "")


@pytest.mark.parametrize("arguments", [*READING, *CHANGING], ids=" ".join)
def test_a_directory_that_is_missing_is_an_error_and_is_not_made(
    nobroker, here, arguments
):
    ran = nobroker(*arguments)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "nobroker: There is no directory ./jobs; nothing was made.\n"
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("arguments", [*READING, *CHANGING], ids=" ".join)
def test_a_directory_without_a_log_is_an_error_and_is_left_alone(
    nobroker, directory, arguments
):
    directory.mkdir()
    (directory / "notes.txt").write_text("mine")
    before = snapshot(directory)
    ran = nobroker(*arguments)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "nobroker: There is no store in ./jobs; nothing was made.\n"
    assert snapshot(directory) == before


def test_the_directory_is_the_option_or_the_environment_or_jobs(
    nobroker, here, monkeypatch
):
    nobroker("enqueue", "1")
    monkeypatch.setenv("NOBROKER_DIR", str(here / "from-environment"))
    nobroker("enqueue", "1", "--count", "2")
    nobroker("--dir", "from-option", "enqueue", "1", "--count", "3")
    nobroker("enqueue", "1", "--dir", "from-option")

    names = ("jobs", "from-environment", "from-option")
    totals = [
        nobroker("--dir", name, "stats", "--json").objects[0]["total"] for name in names
    ]
    assert totals == [1, 2, 4]


def test_the_options_of_all_commands_stand_before_the_command_or_after_it(
    nobroker, queue
):
    with Queue(queue.opened().directory, "emails") as emails:
        emails.enqueue(1)

    before = nobroker("--json", "-q", "emails", "stats")
    after = nobroker("stats", "--json", "-q", "emails")
    assert before == after
    assert [one["queue"] for one in before.objects] == ["emails"]


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_looking_changes_no_file(nobroker, directory, here, arguments):
    with Queue(directory) as queue:
        queue.enqueue(1, job_id="a")
    before = snapshot(directory)
    ran = nobroker(*arguments)

    assert snapshot(directory) == before
    assert ran.code in ((0, 1) if arguments == ("health",) else (0,))


@pytest.mark.root
@pytest.mark.parametrize("in_use", [True, False], ids=["in use", "after a reboot"])
def test_looking_needs_permission_to_read_only(
    nobroker, directory, here, tmp_path, in_use
):
    """A child with the rights of nobody; the rest of the machine cannot be read by it."""
    with Queue(directory) as queue:
        queue.enqueue(1, job_id="a")
    if not in_use:
        (directory / "control").unlink()
    for path in [directory, *directory.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    for path in (here, tmp_path, tmp_path / "index"):
        path.chmod(0o777)
    for path in tmp_path.parents:
        if path.stat().st_uid == os.getuid() and path != path.parent:
            path.chmod(path.stat().st_mode | 0o011)
    for arguments in READING:  # so that every module is loaded
        nobroker(*arguments)
    for path in here.parent.glob("here/copy"):
        path.rename(here / "first-copy")
    before = snapshot(directory)
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            looked = [
                nobroker(*arguments).code
                for arguments in READING
                if arguments[0] not in {"backup", "health"}
            ]
            wrote = [nobroker("enqueue", "1"), nobroker("compact"), nobroker("recover")]
            told = all(
                one.code == 1
                and "Permission denied" in one.err
                and one.err.count("\n") == 1
                for one in wrote
            )
            code = 0 if not any(looked) and told else 1
        finally:
            os._exit(code)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert snapshot(directory) == before


def test_an_error_of_the_store_is_one_line_without_a_traceback(nobroker, queue):
    queue.enqueue(1, job_id="a")
    ran = nobroker("ack", "a")

    assert ran == (1, "", "nobroker: Job a is not leased but ready.\n")


def test_a_fault_of_the_program_itself_is_not_hidden(nobroker, queue, monkeypatch):
    def fail(_call):
        raise KeyError("a fault")

    broken = grammar.Command(name="stats", help="", run=fail)
    monkeypatch.setitem(grammar.COMMANDS, "stats", broken)

    with pytest.raises(KeyError):
        nobroker("stats")


def test_the_console_script_is_the_same_program():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    scripts = declared["project"]["scripts"]
    (installed,) = entry_points(group="console_scripts", name="nobroker")

    assert scripts == {"nobroker": "django_nobroker.cli.program:main"}
    assert installed.value == scripts["nobroker"]


def test_the_program_never_imports_django(tmp_path):
    code = (
        "import sys\n"
        "from django_nobroker.cli.program import main\n"
        "for arguments in (['enqueue', '1'], ['stats'], ['work', 'json:dumps', "
        "'--max-jobs', '0'], ['health'], ['inspect'], ['compact']):\n"
        "    main(arguments)\n"
        "roots = {name.partition('.')[0] for name in sys.modules}\n"
        "sys.exit(len(roots & {'django', 'django_tasks', 'asgiref'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr


def test_a_reader_that_has_read_enough_is_no_error(queue, directory, command):
    queue.enqueue_many(["x" * 500] * 2000)
    with command("inspect") as running:
        assert running.stdout.readline().split()[1] == "segment"
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait(PATIENCE) == 0


def test_ctrl_c_ends_with_130_and_says_nothing(queue, command):
    queue.enqueue(1)
    with command("inspect", "--follow") as running:
        while '"payload"' not in running.stdout.readline():
            pass
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE) == 130
        assert running.stderr.read() == ""


def test_text_that_the_terminal_cannot_show_is_spelt(queue, command):
    queue.enqueue({"grüße": "世界"})
    with command("list", env={"PYTHONIOENCODING": "ascii"}) as running:
        out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, err) == (0, "")
    assert r"gr\xfc\xdfe" in out
    with command("list", "--json", env={"PYTHONIOENCODING": "ascii"}) as running:
        out, _ = running.communicate(timeout=PATIENCE)
    assert r'"gr\u00fc\u00dfe": "\u4e16\u754c"' in out
