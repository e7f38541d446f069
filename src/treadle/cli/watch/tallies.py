"""What is counted while a run is watched: live visits, nodes, fan-outs. Shapes only; `overview.py` keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from treadle.model.errors import Error
from treadle.model.ids import Frames, GroupId, TokenId
from treadle.model.states import Waiting

Json = Any

PENDING, RUNNING, WAITING = "pending", "running", "waiting"


@dataclass(slots=True)
class LiveVisit:
    """A visit that has not ended."""

    token: TokenId
    node: str
    frames: Frames
    state: str = PENDING
    waiting: Waiting | None = None
    detail: Json = None
    until: int | None = None
    title: str | None = None
    since: int = 0
    attempt: int = 0
    lost: str = ""
    """What became of whoever executed this attempt before, if somebody did."""
    error: Error | None = None
    """What its last attempt failed with, while a retry is under way."""


@dataclass(slots=True)
class NodeTally:
    """A node's visits by how they are."""

    ref: str
    created: int = 0
    done: int = 0
    failed: int = 0
    cancelled: int = 0
    retries: int = 0
    live: dict[TokenId, LiveVisit] = field(default_factory=dict)
    groups: dict[GroupId, None] = field(default_factory=dict)
    error: Error | None = None
    first: int | None = None
    last: int | None = None

    @property
    def ended(self) -> int:
        return self.done + self.failed + self.cancelled

    def counted(self, state: str) -> int:
        return sum(1 for visit in self.live.values() if visit.state == state)


@dataclass(slots=True)
class FanTally:
    """One firing of a fan-out, and who has arrived where."""

    total: int
    names: tuple[str, ...]
    arrived: dict[str, set[int]] = field(default_factory=dict)
    """Target of a join → branches that stand there."""
    before: dict[str, set[int]] = field(default_factory=dict)
    """The same, of joins that have been decided: one that is reopened has them back."""
