"""A clock whose hands a test sets; it can also start the machine anew."""

from __future__ import annotations

from django_nobroker.engine.clock import Clock


class SettableClock(Clock):
    """Both clocks stand still until a test moves them.

    The boot clock is far from the wall clock, so that a mix-up is noticed.
    """

    def __init__(self, wall: float = 1_700_000_000.0, boot: float = 5_000.0) -> None:
        self._wall = wall
        self._boot = boot
        self._boots = 1

    def wall(self) -> float:  # type: ignore[override]
        return self._wall

    def boot(self) -> float:
        return self._boot

    def boot_id(self) -> bytes:
        return bytes([self._boots]) * 16

    def sleep(self, seconds: float) -> None:  # type: ignore[override]
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass, for both clocks."""
        self._wall += seconds
        self._boot += seconds

    def step_wall(self, seconds: float) -> None:
        """Let an administrator or a time server set the wall clock."""
        self._wall += seconds

    def restart(self, boot: float = 10.0) -> None:
        """Start the machine anew: another boot id, the boot clock near zero."""
        self._boots += 1
        self._boot = boot
