"""The folder of one run of the demo, and how commands run in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from demo.failure import DemoError
from photo_club.settings import BASE_DIR, VAR

SAMPLE_PHOTOS = BASE_DIR / "sample_photos"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A fresh folder for everything that the site writes during one run."""

    path: Path

    @classmethod
    def fresh(cls) -> Workspace:
        """Make a new folder below ``var/``; two runs never share one."""
        return cls(Path(tempfile.mkdtemp(prefix="demo-", dir=VAR)))

    @property
    def mail(self) -> Path:
        """Where mails are written, one file each."""
        return self.path / "mail"

    @property
    def media(self) -> Path:
        """Where photos and thumbnails are kept."""
        return self.path / "media"

    @property
    def shown(self) -> str:
        """The folder's name as it is shown to people."""
        here = Path.cwd()
        return str(
            self.path.relative_to(here) if self.path.is_relative_to(here) else self.path
        )

    def log(self, name: str) -> Path:
        """Return where the output of a process goes."""
        return self.path / f"{name}.log"

    def command(self, *arguments: str) -> list[str]:
        """Return a command line for this site's ``manage.py``."""
        return [sys.executable, str(BASE_DIR / "manage.py"), *arguments]

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment in which the site uses this folder."""
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "photo_club.settings",
            "PHOTO_CLUB_VAR": str(self.path),
            "PYTHONUNBUFFERED": "1",
            **more,
        }

    def run(self, *arguments: str, **environment: str) -> str:
        """Run a command to its end and return what it printed."""
        done = subprocess.run(  # noqa: S603  The arguments are the demo's own.
            self.command(*arguments),
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            name = f"manage.py {arguments[0]}"
            raise DemoError(f"{name} failed: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def remove(self) -> None:
        """Throw the folder away."""
        shutil.rmtree(self.path, ignore_errors=True)
