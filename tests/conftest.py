"""Settings that hold for every test; fixtures live beside the tests they serve."""

from __future__ import annotations

import os

from hypothesis import settings

# A shared machine stalls for longer than any sensible deadline, and then a slow
# example would look like a wrong one.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
