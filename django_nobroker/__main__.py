"""``python -m django_nobroker``: the console script without its name."""

from __future__ import annotations

import sys

from .cli.program import main

if __name__ == "__main__":
    sys.exit(main(program="python -m django_nobroker"))
