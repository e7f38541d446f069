"""The position of a run's entity, a part of the run's state (2.12)."""

from __future__ import annotations

from msgspec import Struct


class Position(Struct):
    """A node, an edge with progress, a section, or nowhere."""

    node: str | None = None
    edge: str | None = None
    progress: float | None = None
    section: str | None = None
    completed_as: str | None = None
    type: str | None = None
    at: int = 0
    """The time of the last move. It never goes back, also if the clock does."""
