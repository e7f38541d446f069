"""The shape of a run's picture: all that a graph of it shows, in columns.

Data only; see `shapes`.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from treadle.model.errors import Error
from treadle.runtime.view.snapshot_shapes import StateGate, StateScope, StateTimer, StateVisit

Json = Any


class PictureVisits(Struct, frozen=True):
    """Every visit, those that have ended included: one list for each field, in the order of their numbers. A run may
    have a hundred thousand of them, and names of fields would be most of what is sent."""

    nodes: Annotated[list[str], Meta(description="`node` is an index into this.")]
    statuses: Annotated[list[str], Meta(description="`status` is an index into this.")]
    visit: list[int]
    node: list[int]
    status: list[int]
    frames: Annotated[list[list[list[int]]], Meta(description="The branches around it, outermost first: group, index.")]
    attempts: list[int]
    created: Annotated[list[int], Meta(description="Milliseconds after `started` of the run.")]
    created_seq: list[int]
    since: Annotated[list[int], Meta(description="When its state began, likewise; of one that has ended: its end.")]
    queue_ms: Annotated[list[int], Meta(description="Spent in a queue before its present state.")]
    wait_ms: list[int]
    run_ms: list[int]
    held_ms: list[int]
    held: Annotated[list[int], Meta(description="1 if it has come to a join after its work.")]


class PictureWay(Struct, frozen=True):
    """A transition that was taken: how often, and when last."""

    transition: str
    count: int
    seq: int
    at: int
    origin: int | None
    why: str | None


class PictureSite(Struct, frozen=True):
    """One join of a group."""

    node: str
    status: str
    timer: int | None
    count: Annotated[int, Meta(description="Branches that had arrived when it was decided.")]
    arrived: Annotated[list[int], Meta(description="Branches that wait there.")]


class PictureGroup(Struct, frozen=True):
    """A fan-out, also one that is over."""

    group: int
    names: list[str]
    node: str
    path: str
    origin: int
    frames: list[list[int]]
    transitions: list[str]
    total: int
    begun: int
    open: bool
    withdrawn: bool
    opened: int
    opened_seq: int
    failed: Annotated[list[int], Meta(description="Branches that have failed.")]
    sites: list[PictureSite]


class RunPicture(Struct, frozen=True):
    """What a graph of a run shows at its newest event, without its history."""

    run: str
    workflow: str
    version: int
    seq: int
    at: int
    started: int
    ended: int | None
    status: str
    input: Json
    output: Json
    error: Error | None
    scope: StateScope
    counts: Annotated[dict[str, int], Meta(description="Visits by status.")]
    live: Annotated[list[StateVisit], Meta(description="Visits that have not ended, or could be retried, in detail.")]
    visits: PictureVisits
    errors: Annotated[dict[str, Error], Meta(description="Visit → why it failed, if it is not in `live`.")]
    compensating: Annotated[list[int], Meta(description="Visits that undo another.")]
    ways: list[PictureWay]
    groups: list[PictureGroup]
    gates: list[StateGate]
    timers: list[StateTimer]
