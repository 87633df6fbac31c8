"""The shape that every module keeps, whoever writes it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "django_nobroker"
MODULES = sorted(PACKAGE.rglob("*.py"))

MAX_LINES = 300
VAGUE = {"base", "common", "core", "helper", "helpers", "misc", "util", "utils"}
TOP_LEVEL = {
    "LICENSE",
    "README.md",
    "django_nobroker",
    "docs",
    "example_project",
    "pyproject.toml",
    "tests",
    "tox.ini",
}


def run_python(code):
    """Run code in a fresh interpreter without Django's settings in its environment."""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin"},
        check=False,
        timeout=60,
    )


def test_there_is_a_package_to_look_at():
    assert PACKAGE / "__init__.py" in MODULES
    assert PACKAGE / "engine" / "__init__.py" in MODULES


@pytest.mark.parametrize(
    "module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_a_module_is_small_enough_to_have_one_responsibility(module):
    lines = len(module.read_text(encoding="utf-8").splitlines())

    assert lines <= MAX_LINES, f"{module.relative_to(ROOT)} has {lines} lines"


def test_module_names_say_what_is_inside():
    named_by_nothing = [
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*")
        if path.stem.strip("_") in VAGUE
    ]

    assert named_by_nothing == []


def test_nothing_is_ever_read_that_could_run_code():
    """What a log holds is data: no module of the package can make objects of it."""
    dangerous = {"dill", "marshal", "pickle", "shelve", "cloudpickle", "yaml"}
    found = set()
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {one.name.partition(".")[0] for one in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Name) and node.id in {"eval", "exec"}:
                found.add(f"{module.name}: {node.id}")

    assert "msgspec" in found
    assert {name for name in found if name in dangerous or ":" in name} == set()


def test_no_submodule_shadows_a_public_name():
    """Importing django_nobroker.task would replace the name the package exports."""
    import django_nobroker

    submodules = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.name for path in PACKAGE.iterdir() if path.is_dir()
    }

    assert set() == submodules & set(django_nobroker.__all__)


def test_every_public_name_can_be_imported():
    import django_nobroker

    for name in django_nobroker.__all__:
        assert getattr(django_nobroker, name) is not None


@pytest.mark.parametrize(
    "statement",
    [
        "import django_nobroker",
        "from django_nobroker import BackoffPolicy, Job, JobState, Queue, Worker",
        "import django_nobroker.engine",
        "import django_nobroker.exceptions",
    ],
)
def test_a_plain_script_never_imports_django(statement):
    done = run_python(
        f"{statement}\n"
        "import sys\n"
        "roots = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(roots & {'django', 'django_tasks', 'asgiref'}))"
    )

    assert (done.stderr, done.stdout, done.returncode) == ("", "[]\n", 0)


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").is_file()


def test_the_top_level_holds_only_what_was_agreed():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: what is generated cannot be told apart")
    listed = subprocess.run(
        # Inside a container the checkout may belong to another user.
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
        timeout=60,
    ).stdout
    names = {name.split("/")[0] for name in listed.split("\0") if name}

    assert {name for name in names if not name.startswith(".")} == TOP_LEVEL
