"""Entities and their moves in words, for tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treadle.runtime.service.entity_shapes import Entity, EntityPlace
    from treadle.runtime.service.journeys import JourneyMove, Leg


def entity_row(entity: Entity, *, words: bool = False) -> dict[str, Any]:
    """An entity as a row; with `words` for a table."""
    from treadle.cli.screen.output import builtins, clock_time

    row = {"entity": f"{entity.type}/{entity.id}", **builtins(entity)}
    row.pop("number")
    if words:
        last = entity.positions[0] if entity.positions else None
        row = {name: row[name] for name in ("entity", "name", "email")}
        row["where"] = ", ".join(f"{place.workflow}: {place_word(place)}" for place in entity.positions) or "nowhere"
        row["since"] = clock_time(last.since) if last is not None else ""
    return row


def place_word(place: EntityPlace) -> str:
    """The name of the place."""
    return place.node or place.edge or place.section or "nowhere"


def step_row(leg: Leg, move: JourneyMove) -> dict[str, Any]:
    """A move as a row of a table."""
    from treadle.cli.screen.output import clock_time, duration

    notes: Sequence[str | None] = (
        f"now a {move.type}" if move.type else None,
        f"by {move.by}" if move.by else None,
        move.reason,
        f"cost {move.cost:g}" if move.cost else None,
    )
    return {
        "at": clock_time(move.at),
        "run": leg.run or "by hand",
        "workflow": leg.workflow,
        "event": move.event,
        "place": move.node or move.edge or move.section or "nowhere",
        "stay": duration(move.until - move.at) if move.until is not None else "",
        "as": move.completed_as or "",
        "note": ", ".join(note for note in notes if note),
    }
