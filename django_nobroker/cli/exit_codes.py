"""The exit codes of the command line, the same for every command."""

from __future__ import annotations

OK = 0
#: What was asked cannot be done, or what was looked at is not well.
ERROR = 1
#: The command line itself is wrong.
USAGE = 2
#: Ctrl-C.
INTERRUPTED = 130
