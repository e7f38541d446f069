"""Entities as the API shows them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from treadle.runtime.service.entities import EntityRow
from treadle.runtime.service.entity_shapes import Conversion, Crowd, Entity, EntityPlace


class EntityView(Struct):
    """An entity as it is now."""

    type: str
    id: str
    name: str | None
    email: str | None
    attributes: dict[str, Any]
    created: int
    changed: Annotated[int, Meta(description="When the record was last changed; moves do not count.")]
    positions: Annotated[
        list[EntityPlace], Meta(description="Where it is in each workflow it has been in, newest first.")
    ]
    number: Annotated[int | None, Meta(description="The order of creation; null while the record is just made.")] = None
    entity: Annotated[str, Meta(description="TYPE/ID, as a run names it.")] = ""

    def __post_init__(self) -> None:
        self.entity = f"{self.type}/{self.id}"


class PositionsView(Struct):
    """Who is where in a workflow."""

    workflow: str
    places: Annotated[list[Crowd], Meta(description="How many are at each place, those on other pages included.")]
    items: Annotated[list[EntityView], Meta(description="The entities, each with its position in this workflow.")]
    next: str | None = None


class Flow(Struct, kw_only=True):
    """What became of the entries into a place."""

    entered: int
    left: Annotated[int, Meta(description="Entries after which the entity has moved on to another place.")]
    converted: Annotated[int, Meta(description="Entries followed by a completion as success, at once or later.")]
    spent_p50_ms: Annotated[int | None, Meta(description="Time between entering and leaving.")]
    spent_p95_ms: int | None


class EdgeFlow(Flow, kw_only=True):
    """Of an edge."""

    edge: str


class SectionFlow(Flow, kw_only=True):
    """Of a section."""

    section: str


class NodeFlow(Flow, kw_only=True):
    """Of a node."""

    node: str


class ConversionView(Struct):
    """Entries since an instant, by place."""

    workflow: str
    since: int
    edges: list[EdgeFlow]
    sections: list[SectionFlow]
    nodes: list[NodeFlow]


def view(entity: Entity) -> EntityView:
    """An entity without what only pages need."""
    return EntityView(
        entity.type,
        entity.id,
        entity.name,
        entity.email,
        attributes=entity.attributes,
        created=entity.created,
        changed=entity.changed,
        positions=entity.positions,
        number=entity.number,
    )


def new_view(row: EntityRow) -> EntityView:
    """A record that is just being made."""
    return EntityView(
        row.type,
        row.id,
        row.name,
        row.email,
        attributes=row.attributes,
        created=row.created,
        changed=row.changed,
        positions=[],
    )


def conversion_view(found: Conversion) -> ConversionView:
    """Passages, each under the name of its kind of place."""

    def flows(kind: Any, name: str, passages: Any) -> list[Any]:
        return [
            kind(
                **{name: one.place},
                entered=one.entered,
                left=one.left,
                converted=one.converted,
                spent_p50_ms=one.spent_p50_ms,
                spent_p95_ms=one.spent_p95_ms,
            )
            for one in passages
        ]

    return ConversionView(
        found.workflow,
        found.since,
        flows(EdgeFlow, "edge", found.edges),
        flows(SectionFlow, "section", found.sections),
        flows(NodeFlow, "node", found.nodes),
    )
