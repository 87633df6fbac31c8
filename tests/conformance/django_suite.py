"""Django's own tests of ``django.tasks``, run against the log backend.

``python -m tests.conformance.django_suite FOLDER`` fetches the sources of the
installed Django into FOLDER, if they are not there yet.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django

from tests.conformance.sources import Source, fetch

SOURCES = {
    source.version: source
    for source in (
        Source(
            "Django",
            "6.0.10",
            "6005d030df924f85088454c18bd35dcf082b058aa355ad3df520d8de9aef9f41",
        ),
        Source(
            "Django",
            "6.1.3",
            "b5d2d9e35295065d13b1927b3f19a59bd119f737aa6299def14ccca1ae3c8c0d",
        ),
    )
}

_MODULES = (
    "tasks.test_custom_backend",
    "tasks.test_dummy_backend",
    "tasks.test_immediate_backend",
    "tasks.test_tasks",
)

_LACKS = "it asserts that the immediate backend lacks what ours has"
_MUTATES = "it changes a list in the dummy backend's memory; ours is read from the log"

_DUMMY = "tasks.test_dummy_backend.DummyBackendTestCase"
_IMMEDIATE = "tasks.test_immediate_backend.ImmediateBackendTestCase"

EXPECTED = {
    f"{_IMMEDIATE}.test_cannot_get_result": _LACKS,
    f"{_IMMEDIATE}.test_cannot_refresh_result": _LACKS,
    f"{_IMMEDIATE}.test_cannot_pass_run_after": _LACKS,
    f"{_DUMMY}.test_refresh_result": _MUTATES,
    f"{_DUMMY}.test_refresh_result_async": _MUTATES,
}


def main(folder: Path) -> int:
    """Run the suite of the installed Django; return the exit status."""
    version = django.get_version()
    if version not in SOURCES:
        print(f"Django {version} is not one of {', '.join(SOURCES)}.", file=sys.stderr)
        return 2
    sources = fetch(SOURCES[version], folder)
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()

    from django.tasks.backends import dummy, immediate

    from tests.conformance import running, stand_ins

    # Before the suite is imported: it names the two by these paths.
    vars(dummy)["DummyBackend"] = stand_ins.Dummy
    vars(immediate)["ImmediateBackend"] = stand_ins.Immediate
    sys.path.insert(0, str(sources / "tests"))
    return running.run(_MODULES, EXPECTED)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
