"""What the documentation shows is what happens."""

from __future__ import annotations

import ast
import doctest
import os
import subprocess
import sys

import django
import pytest

from tests.docs.snippets import ROOT, chosen, snippets

README = ROOT / "README.md"
QUICKSTART = ROOT / "docs" / "quickstart.md"
HOWTO = ROOT / "docs" / "howto"
#: Pages whose scripts are run one after the other, as a reader would.
FOLLOWED = [
    README,
    QUICKSTART,
    HOWTO / "operations.md",
    HOWTO / "backup.md",
    HOWTO / "payloads.md",
]
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture
def run(tmp_path):
    """Run a Python program as a reader would, in an empty directory of its own."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "DJANGO_SETTINGS_MODULE"
    }
    # The checkout is tested, installed or not.
    environment["PYTHONPATH"] = str(ROOT)
    environment["NOBROKER_INDEX_DIR"] = str(tmp_path.parent)

    def program(*arguments):
        done = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout

    return program


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_python_block_is_python(page):
    for found in snippets(page):
        if found.language == "python":
            ast.parse(found.text, filename=str(page))


@pytest.mark.parametrize("page", FOLLOWED, ids=lambda path: path.name)
def test_every_python_block_of_a_quickstart_is_executed_by_these_tests(page):
    unmarked = [
        found.text
        for found in snippets(page)
        if found.language == "python" and found.role not in {"run", "file"}
    ]

    assert unmarked == []


@pytest.mark.parametrize("page", FOLLOWED, ids=lambda path: path.name)
def test_the_plain_scripts_print_what_the_page_says(page, run, tmp_path):
    """Each script is a process of its own; they share only the directory."""
    scripts = chosen(page, "run")
    expected = chosen(page, "output")
    assert scripts
    assert set(expected) <= set(scripts)

    for name, text in scripts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        printed = run(name)
        if name in expected:
            assert doctest.OutputChecker().check_output(
                expected[name], printed, doctest.ELLIPSIS
            ), f"{name} printed:\n{printed}"


@pytest.mark.parametrize("page", [README, QUICKSTART], ids=lambda path: path.name)
def test_the_django_project_of_the_page_enqueues_and_runs(page, run, tmp_path):
    """The files of the page, put into a new project, make a working site."""
    files = chosen(page, "file")
    run("-m", "django", "startproject", "mysite", ".")
    settings = tmp_path / "mysite" / "settings.py"
    more = files.pop("settings")
    if django.VERSION < (6, 0):
        more += 'INSTALLED_APPS += ["django_tasks"]\n'
    with settings.open("a", encoding="utf-8") as opened:
        opened.write("\n" + more)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    run("manage.py", "check")
    run(
        "manage.py",
        "shell",
        "--no-imports",
        "-c",
        "from django.test import RequestFactory\n"
        "from greetings.views import sign_up\n"
        "answer = sign_up(RequestFactory().post('/', {'name': 'Ada'}))\n"
        "assert answer.status_code == 200, answer",
    )
    printed = run("manage.py", "runworker", "--batch")

    assert "Welcome, Ada" in printed
    assert (tmp_path / "jobs").is_dir()
