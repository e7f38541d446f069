"""Entities as people and programs see them, made of the rows of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from treadle.model.states import RunStatus
from treadle.store.entities import CrowdRow, EntityRow, MoveRow, Passage, Whereabouts

Json = Any


class EntityPlace(Struct, frozen=True, omit_defaults=True):
    """Where an entity is in a workflow, since when, and how it came there."""

    workflow: str
    since: int
    node: str | None = None
    edge: str | None = None
    section: str | None = None
    progress: float | None = None
    completed_as: str | None = None
    run: str | None = None
    """The run that moved it there; None: a person did."""
    state: str | None = None
    """As a canvas says it (`canvas_state`); only in the positions of a workflow."""


class Entity(Struct, frozen=True):
    """An entity as it is now."""

    type: str
    id: str
    name: str | None
    email: str | None
    attributes: dict[str, Json]
    created: int
    changed: int
    positions: list[EntityPlace]
    """One for each workflow it has been in, newest first."""
    number: int
    """The order of creation: `list(before=number)` gives the page after this one."""


class Crowd(Struct, frozen=True, omit_defaults=True):
    """How many entities are at one place."""

    count: int
    node: str | None = None
    edge: str | None = None
    section: str | None = None
    states: dict[str, int] = {}
    """How many of them are in each state (`canvas_state`). Those that nothing works on are not counted."""


class Positions(Struct, frozen=True):
    """Who is where in a workflow."""

    workflow: str
    places: list[Crowd]
    """All places with somebody there, also those that are not on this page."""
    items: list[Entity]
    """Newest record first; `positions` of each holds the one in this workflow."""


class Conversion(Struct, frozen=True):
    """What became of the entries into the places of a workflow since an instant."""

    workflow: str
    since: int
    edges: list[Passage]
    sections: list[Passage]
    nodes: list[Passage]


_STATES = {
    RunStatus.CREATED: "running",
    RunStatus.RUNNING: "running",
    RunStatus.COMPENSATING: "running",
    RunStatus.PAUSED: "paused",
    RunStatus.COMPLETED: "completed",
    RunStatus.CANCELLED: "cancelled",
    RunStatus.COMPENSATED: "cancelled",
    RunStatus.FAILED: "failed",
    RunStatus.TIMED_OUT: "failed",
    RunStatus.COMPENSATION_FAILED: "failed",
}


_ENDINGS = {"success": "completed", "neutral": "completed", "failure": "failed"}


def canvas_state(kind: str, status: str | None, asks: bool, completed_as: str | None) -> str | None:
    """The state of an entity as a canvas says it: running, waiting_for_user, paused, completed, cancelled or failed.
    One that was completed travels no longer, whatever its run does. None where no run works on it: in a section, after
    a move by hand, or when the run was forgotten."""
    if completed_as is not None:
        return _ENDINGS[completed_as]
    if status is None or kind not in ("node", "edge"):
        return None
    return "waiting_for_user" if asks else _STATES[RunStatus(status)]


def crowds_of(rows: Sequence[CrowdRow]) -> list[Crowd]:
    """One crowd for each place, in the order of the rows."""
    found: dict[tuple[str, str], tuple[int, dict[str, int]]] = {}
    for row in rows:
        count, states = found.get((row.kind, row.place), (0, {}))
        state = canvas_state(row.kind, row.status, row.asks, row.completed_as)
        if state is not None:
            states[state] = states.get(state, 0) + row.count
        found[row.kind, row.place] = (count + row.count, states)
    return [Crowd(count, **where(*place), states=states) for place, (count, states) in found.items()]


def where(kind: str, place: str) -> dict[str, str]:
    return {kind: place} if kind in ("node", "edge", "section") else {}


def place_now(move: MoveRow, state: str | None = None) -> EntityPlace:
    return EntityPlace(
        move.workflow,
        move.at,
        **where(move.kind, move.place),
        progress=move.progress,
        completed_as=move.completed_as,
        run=move.run or None,
        state=state,
    )


def entity_here(found: Whereabouts) -> Entity:
    """An entity with its place in one workflow."""
    state = canvas_state(found.move.kind, found.status, found.asks, found.move.completed_as)
    return entity_now(found.entity, [place_now(found.move, state)])


def entity_now(row: EntityRow, places: list[EntityPlace]) -> Entity:
    return Entity(
        row.type,
        row.id,
        name=row.name,
        email=row.email,
        attributes=row.attributes,
        created=row.created,
        changed=row.changed,
        positions=places,
        number=row.number,
    )
