"""What is in the package that people install."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel built from this checkout, opened for reading."""
    target = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, hatchling.build; hatchling.build.build_wheel(sys.argv[1])",
            str(target),
        ],
        cwd=ROOT,
        check=True,
        timeout=120,
    )
    (built,) = target.glob("*.whl")
    with zipfile.ZipFile(built) as opened:
        yield opened


def test_the_wheel_holds_every_file_of_the_package(wheel):
    """Templates, static files and translations travel with the code."""
    expected = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "django_nobroker").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert expected == {name for name in wheel.namelist() if ".dist-info/" not in name}


def test_the_wheel_names_its_version_licence_and_requirements(wheel):
    import django_nobroker

    (name,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    metadata = message_from_bytes(wheel.read(name))
    required = {
        line.split(";")[0].strip()
        for line in metadata.get_all("Requires-Dist", [])
        if "extra ==" not in line
    }

    assert django_nobroker.__version__ == metadata["Version"]
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert {"django", "django-tasks", "lmdb", "msgspec"} == {
        line.split(">")[0].split("<")[0].lower() for line in required
    }
