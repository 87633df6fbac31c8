"""Fetches the sources of a distribution, by version, and unpacks them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Source:
    """A source distribution as its project published it."""

    name: str
    version: str
    sha256: str


def fetch(source: Source, into: Path) -> Path:
    """Return the folder with the unpacked sources; fetched once per folder ``into``.

    Raises:
        CalledProcessError: if pip cannot fetch it, or its hash is another.
    """
    unpacked = into / f"{source.name}-{source.version}"
    if unpacked.is_dir():
        return unpacked
    into.mkdir(parents=True, exist_ok=True)
    wanted = into / f"{source.name}.txt"
    wanted.write_text(
        f"{source.name}=={source.version} --hash=sha256:{source.sha256}\n"
    )
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet"),
            *("--no-deps", "--no-binary", ":all:", "--require-hashes"),
            *("--dest", str(into), "--requirement", str(wanted)),
        ],
        check=True,
    )
    (archive,) = into.glob(f"*-{source.version}.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(into, filter="data")
    found = into / archive.name.removesuffix(".tar.gz")
    return found if found == unpacked else found.rename(unpacked)
