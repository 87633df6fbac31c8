"""Lines that a child process writes into a pipe, so that the parent knows them.

A line is one ``write`` of less than ``PIPE_BUF`` bytes: whole, or not there at all,
even if the writer is killed. What a witness says is known outside of the store.
"""

from __future__ import annotations

import os
import sys


def say(*words: object) -> None:
    """Write one line to standard output at once."""
    os.write(sys.stdout.fileno(), (" ".join(map(str, words)) + "\n").encode())
