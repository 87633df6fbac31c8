#!/usr/bin/env python3
"""Runs Django's commands for the photo club."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Run the command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "photo_club.settings")
    # Last, so that an installed django_nobroker is preferred to the one in the
    # folder above; without one, the example still runs from a plain clone.
    sys.path.append(str(Path(__file__).resolve().parent.parent))
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
