"""Virtual time. Owns the instant that everything in a world reads as `now`; it moves only when told to."""

from __future__ import annotations

EPOCH_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z: where every virtual clock begins, so that two runs of a scenario write the same
history."""


class FakeClock:
    """Milliseconds since the Unix epoch, never going back."""

    __slots__ = ("_now",)

    def __init__(self, now: int = EPOCH_MS) -> None:
        self._now = now

    @property
    def now(self) -> int:
        """The current instant."""
        return self._now

    def advance(self, ms: int) -> None:
        """Moves forward by a duration."""
        self.advance_to(self._now + ms)

    def advance_to(self, instant: int) -> None:
        """Moves to an instant; one in the past is a bug of the caller."""
        if instant < self._now:
            raise ValueError(f"time cannot go back from {self._now} to {instant}")
        self._now = instant
