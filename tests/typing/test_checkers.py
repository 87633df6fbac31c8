"""Type checkers see what a queue holds: they accept the one file, and refuse the other.

``tox run -e types`` has both checkers; where one is missing, its tests are skipped.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ACCEPTED, REFUSED = HERE / "accepted.py", HERE / "refused.py"

_EXPECTED = re.compile(r"# wrong:? (?P<what>\w+)$")
#: What each checker calls what is wrong.
CODES = {
    "mypy": {
        "argument": "arg-type",
        "assignment": "assignment",
        "attribute": "attr-defined",
        "call": "call-arg",
        "frozen": "misc",
        "item": "list-item",
        "optional": "union-attr",
    },
    "pyright": {
        "argument": "reportArgumentType",
        "assignment": "reportAssignmentType",
        "attribute": "reportAttributeAccessIssue",
        "call": "reportCallIssue",
        "frozen": "reportAttributeAccessIssue",
        "item": "reportArgumentType",
        "optional": "reportOptionalMemberAccess",
    },
}
_MYPY = re.compile(r"^[^:]+:(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$")


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=300,
    )


def mypy(path):
    """Return line and code of each error that mypy finds in a file."""
    done = run("mypy", "--no-pretty", "--no-color-output", str(path))
    assert done.returncode in (0, 1), done.stdout + done.stderr
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    found = [_MYPY.match(line) for line in errors]
    assert None not in found, done.stdout
    return [(int(one["line"]), one["code"]) for one in found]


def pyright(path):
    """Return line and rule of each error that pyright finds in a file."""
    done = run("pyright", "--outputjson", "--pythonpath", sys.executable, str(path))
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    return [
        (one["range"]["start"]["line"] + 1, one["rule"])
        for one in report["generalDiagnostics"]
        if one["severity"] == "error"
    ]


CHECKERS = [
    pytest.param(
        checker,
        id=checker.__name__,
        marks=pytest.mark.skipif(
            find_spec(checker.__name__) is None,
            reason=f"{checker.__name__} is not installed",
        ),
    )
    for checker in (mypy, pyright)
]


@pytest.mark.parametrize("checker", CHECKERS)
def test_what_a_user_writes_is_accepted_and_inferred(checker):
    assert checker(ACCEPTED) == []


@pytest.mark.parametrize("checker", CHECKERS)
def test_each_mistake_is_refused_on_its_line_and_nothing_else_is(checker):
    lines = enumerate(REFUSED.read_text(encoding="utf-8").splitlines(), 1)
    expected = [
        (number, CODES[checker.__name__][found["what"]])
        for number, line in lines
        if (found := _EXPECTED.search(line))
    ]
    assert len(expected) > 15

    assert sorted(set(checker(REFUSED))) == expected
