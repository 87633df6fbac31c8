"""Tells which kind of file system a directory is on; on Linux only."""

from __future__ import annotations

import os
from pathlib import Path

_NETWORK = {
    "9p",
    "afs",
    "ceph",
    "cifs",
    "fuse.ceph",
    "fuse.glusterfs",
    "fuse.s3fs",
    "fuse.sshfs",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "smb3",
    "smbfs",
}


def network_file_system(directory: Path) -> str:
    """Return the name of the network file system below ``directory``, else "".

    The directory, or the first of its parents that exists, decides.
    """
    place = Path(os.path.realpath(directory))
    kinds = dict(_mounts())
    while str(place) not in kinds and place != place.parent:
        place = place.parent
    kind = kinds.get(str(place), "")
    return kind if kind in _NETWORK else ""


def _mounts() -> list[tuple[str, str]]:
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    # device, mount point, kind, ...; a later mount covers an earlier one.
    return [
        (_unescaped(parts[1]), parts[2])
        for line in lines
        if len(parts := line.split(" ")) > 2
    ]


def _unescaped(path: str) -> str:
    for escaped, character in (
        (r"\040", " "),
        (r"\011", "\t"),
        (r"\012", "\n"),
        (r"\134", "\\"),
    ):
        path = path.replace(escaped, character)
    return path
