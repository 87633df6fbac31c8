"""Builds the documentation; signatures and options are read from the code."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django  # noqa: E402

django.setup()

import django_nobroker  # noqa: E402

project = "django-nobroker"
author = "The django-nobroker authors"
copyright = f"2026, {author}"  # noqa: A001
version = release = django_nobroker.__version__

extensions = [
    "myst_parser",
    "options_table",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "changelog.d"]

html_theme = "furo"
html_title = "django-nobroker"

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
