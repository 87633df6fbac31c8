"""The page of the commands says what the parser takes, and shows what is printed."""

from __future__ import annotations

import argparse
import doctest
import os
import re
import subprocess
import sys

import pytest

from django_nobroker.cli import grammar
from tests.docs.snippets import ROOT, chosen

PAGE = ROOT / "docs" / "reference" / "commands.md"
TEXT = PAGE.read_text(encoding="utf-8")
SECTIONS = {
    section.partition("\n")[0]: section.partition("\n")[2]
    for section in TEXT.split("\n## ")[1:]
}
COMMON = {"-d", "--dir", "--backend", "-q", "--queue", "--json", "--version"}
COMMON |= {"-h", "--help"}


def documented(section):
    """Return the arguments that the tables of a section name."""
    cells = re.findall(r"^\| (`[^|]*) \|", SECTIONS[section], re.MULTILINE)
    words = [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]
    names = {word.split()[0] for word in words}
    return {name for name in names if name.startswith("-") or name.isupper()} | {
        name for name in names if ":" in name
    }


def declared(command):
    """Return the arguments that the parser of a command declares of its own."""
    parser = argparse.ArgumentParser(add_help=False)
    command.arguments(parser)
    return {
        name
        for action in parser._actions
        for name in action.option_strings or [action.metavar]
    }


def test_each_command_has_its_section_and_nothing_else_has_one():
    assert set(SECTIONS) == {"For all commands", *grammar.COMMANDS}


@pytest.mark.parametrize("command", grammar.COMMANDS.values(), ids=lambda one: one.name)
def test_the_arguments_of_a_command_are_all_on_the_page(command):
    assert documented(command.name) == declared(command)


def test_the_options_of_all_commands_are_on_the_page():
    parser = argparse.ArgumentParser()
    grammar.declare(parser, lambda one, default: one.add_argument("-d", "--dir"))
    known = {name for action in parser._actions for name in action.option_strings}

    assert documented("For all commands") == COMMON
    assert known <= COMMON


def test_the_tour_prints_what_the_page_says(tmp_path):
    tour = chosen(PAGE, "command")["tour"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "NOBROKER_INDEX_DIR": str(tmp_path.parent),
    }
    environment.pop("NOBROKER_DIR", None)
    steps = re.findall(r"^\$ nobroker (.*)\n((?:[^$].*\n?)*)", tour, re.MULTILINE)
    assert len(steps) == tour.count("$ nobroker")

    for arguments, expected in steps:
        done = subprocess.run(
            f"{sys.executable} -m django_nobroker {arguments}",
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        wanted = expected if expected.endswith("\n") else expected + "\n"
        assert doctest.OutputChecker().check_output(
            wanted, done.stdout, doctest.ELLIPSIS
        ), f"{arguments} printed:\n{done.stdout}{done.stderr}"
