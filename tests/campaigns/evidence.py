"""Runs the tests of faults and writes down what they showed.

``python -m tests.campaigns.evidence`` appends one line for each figure to
``docs/durability/evidence.jsonl`` and renews the table of ``docs/durability.md``;
``python -m tests.campaigns.evidence table`` renews the table only. Tests print their
figures as ``words N/N``; those of one kind are added up.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
LINES = ROOT / "docs" / "durability" / "evidence.jsonl"
PAGE = ROOT / "docs" / "durability.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
FIGURE = re.compile(r"^(?:.*: )?(?P<words>[a-z ]+) (?P<good>\d+)/(?P<all>\d+)$")


class Campaign(NamedTuple):
    """Tests that are run together, and what each of their figures shows."""

    command: tuple[str, ...]
    claims: dict[str, str]


PYTEST = ("-m", "pytest", "-q", "-rP", "-p", "no:cacheprovider")
CAMPAIGNS = {
    "tests/faults/test_kill_points.py": Campaign(
        PYTEST,
        {
            "kill points survived": "killed before or after any call of any operation, "
            "a process takes nothing with it"
        },
    ),
    "tests/faults/test_refused_calls.py": Campaign(
        PYTEST,
        {
            "refused calls survived": "whatever call fails (EIO, ENOSPC, a short write), "
            "the caller is told, and a failed sync is final"
        },
    ),
    "tests/faults/test_power_cuts.py": Campaign(
        PYTEST,
        {
            "crash states recovered": "whenever the power fails, whatever of the unsynced "
            "writes and names is on the disk, what was acknowledged is there",
            "stale indexes thrown away": "an index that outlives the end of its log is "
            "never believed",
        },
    ),
    "tests/faults/test_damage.py": Campaign(
        PYTEST,
        {
            "cut points recovered": "a log cut at any byte keeps what was whole before",
            "flips noticed": "a flipped bit is noticed, costs one record at most, and "
            "no wrong record is accepted",
            "flips reported": "a store with a flipped bit keeps all other jobs and "
            "reports the place",
            "damaged blocks reported": "a damaged block costs what stood in it only, and "
            "is reported",
        },
    ),
    "tests/faults/test_interleavings.py": Campaign(
        PYTEST,
        {
            "interleavings agreed": "two processes agree on one store, in whatever order "
            "their system calls happen, also if one of them is killed"
        },
    ),
    "tests/faults/planted.py": Campaign(
        ("-m", "tests.faults.planted"),
        {"planted bugs caught": "the tests would notice"},
    ),
}


def main() -> int:
    """Run all campaigns; return 1 if any of them failed."""
    surroundings = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _output("git", "rev-parse", "--short", "HEAD"),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "file_system": _output("stat", "-f", "-c", "%T", _scratch()),
    }
    failed = 0
    LINES.parent.mkdir(exist_ok=True)
    for test, campaign in CAMPAIGNS.items():
        began = time.monotonic()
        path = () if campaign.command[1] != "pytest" else (test,)
        done = subprocess.run(
            [sys.executable, *campaign.command, *path],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = round(time.monotonic() - began, 1)
        failed += done.returncode != 0
        good, all_ = _sums(done.stdout)
        for words, claim in campaign.claims.items():
            line = {
                **surroundings,
                "test": test,
                "claim": claim,
                "figure": f"{words} {good[words]:,}/{all_[words]:,}",
                "ok": done.returncode == 0 and 0 < good[words] == all_[words],
                "seconds": seconds,
            }
            print(json.dumps(line), flush=True)
            with LINES.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
    write_table()
    return 1 if failed else 0


def _output(*command: str) -> str:
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def _scratch() -> str:
    return "/dev/shm" if os.path.isdir("/dev/shm") else "/tmp"


def _sums(text: str) -> tuple[Counter[str], Counter[str]]:
    good: Counter[str] = Counter()
    all_: Counter[str] = Counter()
    for line in text.splitlines():
        found = FIGURE.match(line)
        if found is not None:
            good[found["words"]] += int(found["good"])
            all_[found["words"]] += int(found["all"])
    return good, all_


# --- the table ---------------------------------------------------------------------------


def newest() -> dict[str, dict[str, Any]]:
    """Return the newest line of every claim, in the order of the campaigns."""
    lines = LINES.read_text(encoding="utf-8").splitlines()
    found = {one["claim"]: one for one in map(json.loads, lines)}
    claims = [claim for one in CAMPAIGNS.values() for claim in one.claims.values()]
    return {claim: found[claim] for claim in claims if claim in found}


def table() -> str:
    """Return the table as the page has it."""
    return "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    yield "| claim | figure | test | date |"
    yield "| --- | --- | --- | --- |"
    for claim, one in newest().items():
        figure = one["figure"] if one["ok"] else f"**failed**: {one['figure']}"
        yield f"| {claim} | {figure} | `{one['test']}` | {one['date']} |"


def write_table() -> None:
    """Put the table into the page."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}{table()}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["table"]:
        write_table()
    else:
        sys.exit(main())
