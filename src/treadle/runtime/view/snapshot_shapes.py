"""The shapes of a run's state at one event, and of the difference between two.

Data only; see `shapes`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from treadle.model.errors import Error

Json = Any


class StateScope(Struct, frozen=True):
    """The data of one scope: the run's own, or what a branch has written over it."""

    group: int | None
    branch: int | None
    state: Json
    output: Json
    nodes: Json


class StateVisit(Struct, frozen=True):
    """A visit that had not ended, or that had failed and could be retried."""

    visit: int
    node: str
    path: str
    status: str
    waiting_for: str | None
    attempt: int
    attempts: int
    error: Error | None
    detail: Json
    compensation: bool


class StateGroup(Struct, frozen=True):
    """A group that was under way."""

    group: int
    names: list[str]
    node: str
    path: str
    open: bool
    total: int
    begun: int
    failed: Annotated[list[int], Meta(description="Branches that have failed.")]


class StateJoin(Struct, frozen=True):
    """A join at which branches or tokens could meet: of a group, or a node's own."""

    join: str
    """`<group>:<node>`, or `<node>` and the item for a node's own join."""
    node: str
    group: int | None
    status: str
    arrived: Annotated[list[int], Meta(description="Branches that wait there; of a node's own join, the visits.")]
    live: int


class StateGate(Struct, frozen=True):
    """An open gate."""

    visit: int
    node: str
    title: str | None
    assign: Json
    claimed_by: str | None
    opened: int
    due: int | None


class StateTimer(Struct, frozen=True):
    """A timer that had neither fired nor been cleared."""

    timer: int
    due: int
    purpose: str
    visit: int | None
    group: int | None
    target: str | None


class StateView(Struct, frozen=True):
    """The fold of a run's history up to one event."""

    run: str
    seq: int
    at: int
    status: str
    input: Json
    output: Json
    error: Error | None
    scope: StateScope
    branches: Annotated[list[StateScope], Meta(description="What branches have written and no join has merged yet.")]
    visits: list[StateVisit]
    counts: Annotated[dict[str, int], Meta(description="Visits by status, those that have ended included.")]
    groups: list[StateGroup]
    joins: list[StateJoin]
    gates: list[StateGate]
    timers: list[StateTimer]
    signals: Annotated[list[Json], Meta(description="Signals that nobody has taken yet.")]


class DataChange(Struct, frozen=True):
    """One value of a scope that is another now. The place is a JSON Pointer."""

    place: str
    change: Literal["added", "removed", "changed"]
    before: Json = None
    after: Json = None
    group: int | None = None
    branch: int | None = None


class FieldChange(Struct, frozen=True, rename={"before": "from", "after": "to"}):
    """One field of something that is there before and after."""

    ref: str
    field: str
    before: Json
    after: Json


class Changed(Struct, frozen=True):
    """What was added, removed and changed of one kind of thing, by its number or name."""

    added: list[Json]
    removed: list[Json]
    changed: list[FieldChange]


class VisitMove(Struct, frozen=True, rename={"begin": "from", "end": "to"}):
    """A visit whose status differs between two moments."""

    visit: int
    node: str
    path: str
    begin: Annotated[str | None, Meta(description="Its status at the first moment; null: it did not exist yet.")]
    end: Annotated[str | None, Meta(description="Its status at the second one; null likewise.")]


class StateDifference(Struct, frozen=True, rename={"begin": "from", "end": "to"}):
    """What changed in a run between two of its events."""

    run: str
    begin: int
    end: int
    run_fields: Annotated[list[FieldChange], Meta(description="Status, output and error of the run itself.")]
    data: list[DataChange]
    visits: Annotated[Changed, Meta(description="Those that a state holds: they had not ended.")]
    groups: Changed
    joins: Changed
    gates: Changed
    timers: Changed
    moved: Annotated[list[VisitMove], Meta(description="Visits by status, those that began or ended included.")] = []
