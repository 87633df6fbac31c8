"""What identifies this machine, this boot and this container.

Facts only: boot id, PID namespace, the offset of a time namespace, and where
memory-backed storage is. It opens nothing of a store.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import uuid
from functools import cache
from pathlib import Path

#: Below this much free memory-backed storage an index would not fit for long
#: (Docker gives a container 64 MB), so it goes to the temporary directory.
ENOUGH_SHARED_MEMORY = 128 * 1024 * 1024


@cache
def boot_id() -> bytes:
    """Return 16 bytes that differ after every start of the machine.

    Zero bytes where the system does not tell: then every first opening of a
    store counts as the first one after a start.
    """
    with contextlib.suppress(OSError, ValueError):
        return uuid.UUID(
            Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        ).bytes
    if sys.platform == "darwin":
        with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
            out = subprocess.run(
                ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"],
                check=True,
                capture_output=True,
                text=True,
                timeout=5,
            ).stdout
            return uuid.UUID(out.strip()).bytes
    return bytes(16)


def pid_namespace() -> int:
    """Return the inode of this process's PID namespace, 0 where there is none.

    LMDB marks its readers by PID, so two namespaces cannot share one index.
    """
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


@cache
def boot_clock_offset() -> float:
    """Return the seconds that a time namespace adds to the boot clock.

    Lease deadlines are compared across containers, so the namespace's own
    offset has to be taken out again.
    """
    try:
        text = Path("/proc/self/timens_offsets").read_text()
    except OSError:
        return 0.0
    for line in text.splitlines():
        name, *numbers = line.split()
        if name in ("boottime", "7") and len(numbers) == 2:
            return int(numbers[0]) + int(numbers[1]) / 1e9
    return 0.0


def index_roots(override: str | None = None) -> list[str]:
    """Return the directories where an index may live, best first.

    One that was asked for is made if it is missing.
    """
    if override is not None:
        os.makedirs(override, exist_ok=True)
        return [override]
    roots = []
    with contextlib.suppress(OSError):
        disk = os.statvfs("/dev/shm")  # noqa: S108 - memory-backed on purpose; see index.py
        if disk.f_bavail * disk.f_frsize >= ENOUGH_SHARED_MEMORY:
            roots.append("/dev/shm")  # noqa: S108
    roots.append(tempfile.gettempdir())
    return roots
