"""Checks where a run's entity is, and the moves that brought it there. Part of `expectations`."""

from __future__ import annotations

from typing import Any

from treadle.testing.scenario.comparing import Difference, Differences, matches, shown
from treadle.testing.scenario.form import EntityExpected
from treadle.testing.scenario.observed import Observed

Json = Any


def entity_differences(expected: EntityExpected, observed: Observed) -> Differences:
    """Everything in which the run's entity is not as expected."""
    actual = _position(observed)
    for key, value in expected.position.items():
        if not matches(value, actual.get(key)):
            yield Difference(f"entity.{key}", shown(value), shown(actual.get(key)))
    if expected.journey is not None:
        yield from _journey(expected.journey, observed)


def _position(observed: Observed) -> dict[str, Json]:
    """Where the entity is now: its last move says; type and outcome stay until something changes them."""
    projection = observed.run.projection
    entity = projection.started.entity if projection.started else None
    position: dict[str, Json] = {"type": entity.type, "section": entity.section} if entity else {}
    for move in projection.journey:
        position |= {"node": move.node, "edge": move.edge, "section": move.section}
        position["type"] = move.entity_type or position.get("type")
        position["completed_as"] = move.completed_as or position.get("completed_as")
    return position


def _journey(expected: list[dict[str, Json]], observed: Observed) -> Differences:
    actual = [
        {
            "event": move.event,
            "node": move.node,
            "edge": move.edge,
            "section": move.section,
            "completed_as": move.completed_as,
            "type": move.entity_type,
        }
        for move in observed.run.projection.journey
    ]
    fits = len(actual) == len(expected) and all(
        matches({"contains": wanted}, move) for wanted, move in zip(expected, actual, strict=True)
    )
    if not fits:
        brief = [{key: value for key, value in move.items() if value is not None} for move in actual]
        yield Difference("entity.journey", shown(expected), shown(brief))
