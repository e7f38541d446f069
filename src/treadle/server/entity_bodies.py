"""Bodies, queries and pages of the routes about entities."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from treadle.runtime.service.journeys import Leg
from treadle.server.entity_views import EntityView

Limit = Annotated[int, Meta(ge=1, le=1_000)]
Before = Annotated[int | None, Meta(description="Only records with a smaller `number`.")]


class NewEntity(Struct, kw_only=True):
    """A record to make."""

    type: Annotated[str, Meta(examples=["lead"])]
    id: Annotated[str, Meta(examples=["4711"])]
    name: str | None = None
    email: str | None = None
    attributes: dict[str, Any] | None = None


class EntityPatch(Struct, kw_only=True):
    """A change of a record; what is not there stays as it is."""

    name: Annotated[str | UnsetType | None, Meta(description="null removes it.")] = UNSET
    email: Annotated[str | UnsetType | None, Meta(description="null removes it.")] = UNSET
    attributes: Annotated[
        dict[str, Any] | UnsetType, Meta(description="Merged into those there are; null removes one (RFC 7396).")
    ] = UNSET


class MoveByHand(Struct, kw_only=True):
    """A move by hand: to a node or to a section."""

    workflow: str
    node: str | None = None
    section: str | None = None
    reason: str | None = None


class EntityFilter(Struct, kw_only=True):
    """Which entities."""

    type: str | None = None
    workflow: Annotated[str | None, Meta(description="Those that are somewhere in it.")] = None
    section: Annotated[str | None, Meta(description="Those that are in it.")] = None
    text: Annotated[str | None, Meta(description="Part of id, name or email.")] = None
    before: Before = None
    limit: Limit = 100
    cursor: str | None = None


class JourneyQuery(Struct, kw_only=True):
    """Which part of a journey."""

    limit: Limit = 100
    cursor: str | None = None


class PositionQuery(Struct, kw_only=True):
    """Which entities of a workflow."""

    node: str | None = None
    edge: str | None = None
    section: str | None = None
    before: Before = None
    limit: Limit = 100
    cursor: str | None = None


class SinceQuery(Struct, kw_only=True):
    """Since when."""

    since: Annotated[int, Meta(ge=0, description="Milliseconds since 1970.")] = 0


class EntityPage(Struct):
    """A page of entities."""

    items: list[EntityView]
    next: str | None = None


class JourneyPage(Struct):
    """Legs of a journey, newest first."""

    items: list[Leg]
    next: str | None = None
