"""Counts of a run that is watched: live visits, nodes, fan-outs. Data, and its renaming by a migration;
`overview.py` does all other updates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    """What happened to the node that executed this attempt before: `has stopped` or `is gone`; else empty."""
    error: Error | None = None
    """The error of its last attempt, while a retry is under way."""


@dataclass(slots=True)
class NodeTally:
    """A node's visits, counted by state."""

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
    """One firing of a fan-out, and the branches that have arrived at joins."""

    total: int
    names: tuple[str, ...]
    arrived: dict[str, set[int]] = field(default_factory=dict)
    """Target of a join → branches that wait there."""
    before: dict[str, set[int]] = field(default_factory=dict)
    """The same for joins that were decided: a join that is reopened gets its branches back."""


def rename(
    nodes: dict[str, str],
    kept: Sequence[dict[TokenId, LiveVisit]],
    node: Callable[[str], NodeTally],
    fans: Iterable[FanTally],
) -> None:
    """The run was migrated: visits that are live, or may come back, and joins are at the nodes that take the place of
    theirs."""
    for token, visit in [entry for visits in kept for entry in visits.items() if entry[1].node in nodes]:
        live = node(visit.node).live.pop(token, None)
        visit.node = nodes[visit.node]
        if live is not None:
            node(visit.node).live[token] = live
    for fan in fans:
        fan.arrived = {nodes.get(target, target): branches for target, branches in fan.arrived.items()}
        fan.before = {nodes.get(target, target): branches for target, branches in fan.before.items()}
