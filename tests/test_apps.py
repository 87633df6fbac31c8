"""What the app does when Django starts, and what it leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import django
import pytest
from django.apps import apps

ROOT = Path(__file__).resolve().parent.parent


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_app_has_a_name_for_people():
    assert apps.get_app_config("django_nobroker").verbose_name == "Nobroker"


def test_starting_opens_no_store_and_imports_no_engine():
    done = run(
        "import sys, django; django.setup(); import tests.sample_tasks\n"
        "print([m for m in sys.modules if m == 'lmdb' or '.engine.log' in m])"
    )

    assert (done.stdout, done.stderr) == ("[]\n", "")
    assert not (ROOT / "tests" / "jobs").exists()


@pytest.mark.skipif(django.VERSION >= (6, 0), reason="Django has its own framework")
def test_without_the_backport_the_error_says_what_to_install():
    done = run(
        "import sys; sys.modules['django_tasks'] = None\nimport django_nobroker.compat"
    )

    assert 'pip install "django-nobroker[backport]"' in done.stderr


@pytest.mark.skipif(django.VERSION >= (6, 0), reason="Django has its own framework")
def test_the_backport_need_not_be_installed_as_an_app():
    done = run(
        "import tests.settings as s; s.INSTALLED_APPS.remove('django_tasks')\n"
        "s.TASKS['default']['OPTIONS'] = {'FSYNC': 'no'}\n"
        "import django; django.setup()\n"
        "from django.core.checks import run_checks\n"
        "print([m.id for m in run_checks()])"
    )

    assert "django_nobroker.E003" in done.stdout, done.stderr
