"""What only a terminal sees: the bar, the colours, the width; and a question there."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import sys
import termios

import pytest

from django_nobroker import Queue
from django_nobroker.cli.progress import Bar
from tests.cli.conftest import ROOT


@pytest.fixture
def terminal():
    """Run the program on a terminal of 60 columns; answer its question."""

    def run(*arguments, answer=b"", **environment):
        child, fd = pty.fork()
        if child == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
            os.environ.update(PYTHONPATH=str(ROOT), TERM="xterm", **environment)
            for name in ("COLUMNS", "NO_COLOR"):
                if name not in environment:
                    os.environ.pop(name, None)
            program = [sys.executable, "-m", "django_nobroker", *arguments]
            # Readline tells C of the columns and not Python: hand over what Python knows.
            os.execve(sys.executable, program, dict(os.environ))
        said = b""
        while True:
            try:
                part = os.read(fd, 4096)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            said += part
            if answer and b"[y/N]" in said:
                os.write(fd, answer)
                answer = b""
        os.close(fd)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return code, said.decode().replace("\r\n", "\n")

    return run


def test_long_work_shows_a_bar_that_is_gone_at_its_end(queue, terminal):
    queue.enqueue_many(range(100))
    code, said = terminal("verify")

    assert code == 0
    bar, answer = said.rsplit("\r\x1b[K", 1)
    assert "Verifying [" in bar
    assert "100%" in bar
    assert answer.startswith("ok: ")


def test_a_table_fits_the_terminal_and_its_titles_stand_out(queue, terminal):
    queue.enqueue("x" * 500, job_id="a")
    _, said = terminal("list")
    title, row = said.splitlines()

    assert title.startswith("\x1b[1m")
    assert title.endswith("\x1b[0m")
    assert len(row) == 60
    assert row.endswith("…")


def test_no_color_is_respected(queue, terminal):
    queue.enqueue(1)

    assert "\x1b[" not in terminal("list", NO_COLOR="1")[1]
    assert "\x1b[31m" in terminal("health")[1]


def test_a_job_cannot_write_to_the_terminal(queue, terminal):
    queue.enqueue("\x1b]0;owned\x07", job_id="a")
    _, said = terminal("list")

    assert "\x07" not in said
    assert "\x1b]" not in said


@pytest.mark.parametrize(
    ("answer", "code", "left"), [(b"y\n", 0, 0), (b"n\n", 1, 2), (b"\x03", 130, 2)]
)
def test_a_question_is_answered_at_the_terminal(
    queue, directory, terminal, answer, code, left
):
    queue.enqueue_many([1, 2])
    ended, said = terminal("purge", answer=answer)

    assert ended == code
    assert "Traceback" not in said
    with Queue(directory, read_only=True) as reader:
        assert reader.stats().total == left


def test_without_a_terminal_there_is_no_bar():
    stream = io.StringIO()
    with Bar(stream, "Copying") as bar:
        bar(1, 2)
        bar(0, 0)

    assert stream.getvalue() == ""


def test_the_bar_is_gone_when_the_work_fails():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()

    def work():
        with Bar(stream, "Copying") as bar:
            bar(1, 2)
            raise KeyError

    with pytest.raises(KeyError):
        work()

    assert stream.getvalue().startswith("\r\x1b[KCopying [")
    assert stream.getvalue().endswith("\r\x1b[K")
