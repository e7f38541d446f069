"""Entities as records, their journeys and positions: the port for what outlives the runs that move an entity.

Owns the records and the verbs. Promises nothing by itself; `tests/contract/test_entities.py` runs on every store. Must
not know a rule: moves are kept as the kernel has decided them.

Theory of operation
    An entity has a record, and any number of addresses TYPE/ID that lead to it: the one it has now, and those it had
    before a move changed its type. An address leads to the same entity until the record is deleted. `key` names the
    record inside the store: the first address it had.

    A `NoteMove` of a commit is written in the commit's transaction. It makes the record if there is none, appends a
    move to the journey and, if no later move is known, moves the position. A person's change of a record, and a move by
    hand of an entity without a live run, are transactions of their own.

Invariants
    1. Moves of one entity in one workflow are in the order of (at, run, seq), whatever order they were committed in.
       Moves of one run keep the order of its history.
    2. The position of an entity in a workflow is its last move there, in that order. So for every place: entered since
       the beginning, minus left, is the number of entities that are there.
    3. A forgotten run leaves its moves. Deleting the record deletes everything about the entity.
    4. A record is not deleted while a run about it is live.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from treadle.model.ids import RunId
from treadle.store.service import Changes

Json = Any

BY_HAND = RunId("")
"""The run of a move that no run has made."""

Inside = Mapping[tuple[str, str], str]
"""Places, each as its kind and name, with the section that holds it."""
NOWHERE: Inside = {}


class EntityRow(Struct, frozen=True):
    """A record."""

    type: str
    id: str
    name: str | None = None
    email: str | None = None
    attributes: dict[str, Json] = {}
    created: int = 0
    changed: int = 0
    """The time of the last change of the record itself, not of its last move."""
    key: str = ""
    number: int = 0
    """The order of creation."""


class MoveRow(Struct, frozen=True):
    """One move of an entity."""

    key: str
    workflow: str
    at: int
    run: RunId
    """`BY_HAND`: no run has made it."""
    seq: int
    """Of the event; of a move by hand a number of its own."""
    event: str
    kind: str
    """The kind of place it leads to: node | edge | section | nowhere."""
    place: str
    """The name of the place."""
    progress: float | None = None
    completed_as: str | None = None
    set_type: str | None = None
    by: str | None = None
    reason: str | None = None

    @property
    def order(self) -> tuple[int, RunId, int]:
        """Where the move comes among those of its entity."""
        return self.at, self.run, self.seq


class Whereabouts(Struct, frozen=True):
    """An entity and its last move in a workflow."""

    entity: EntityRow
    move: MoveRow
    status: str | None = None
    """Of the run that made the move; None: a person did, or the run was forgotten."""
    asks: bool = False
    """Whether that run has an open gate at the node."""


class CrowdRow(Struct, frozen=True):
    """How many entities are at one place for the same reason."""

    kind: str
    place: str
    status: str | None
    """As `Whereabouts.status`."""
    asks: bool
    completed_as: str | None
    count: int


class Passage(Struct, frozen=True):
    """How often a place was entered in some time, and what became of those entries."""

    kind: str
    place: str
    entered: int
    left: int
    """Entries after which the entity has moved on to another place."""
    converted: int
    """Entries that were followed by a completion as `success`, at once or later."""
    spent_p50_ms: int | None = None
    """Time between entering and leaving, of those that have left."""
    spent_p95_ms: int | None = None


class EntityQuery(Struct, frozen=True):
    """A query for records: every condition that is set must hold. Newest first."""

    type: str | None = None
    workflow: str | None = None
    """The entity has a position in this workflow."""
    section: str | None = None
    """It is in this section, of the workflow if one is given."""
    text: str | None = None
    """Part of its id, name or email; upper and lower case are the same."""
    before: int | None = None
    """Only records with a smaller number: the page after the one that ended there."""
    limit: int = 100


class EntityChange(Struct, frozen=True):
    """A change of a record by a person or another system. None: stays as it is."""

    name: str | None = None
    email: str | None = None
    attributes: Json = None
    """A JSON merge patch (RFC 7396): null removes."""
    clear: tuple[str, ...] = ()
    """Of `name` and `email`: those to be removed."""


def place_of(node: str | None, edge: str | None, section: str | None) -> tuple[str, str]:
    """A place as its kind and its name."""
    if node is not None:
        return "node", node
    if edge is not None:
        return "edge", edge
    return ("section", section) if section is not None else ("nowhere", "")


@runtime_checkable
class KeepsEntities(Protocol):
    """The verbs. Every one is one transaction; refusals are `StoreConflict`."""

    async def find_entities(self, query: EntityQuery) -> list[EntityRow]:
        """The records a query describes."""

    async def entity_at(self, type: str, id: str) -> EntityRow | None:
        """The record that an address leads to, also a former one."""

    async def create_entity(self, row: EntityRow, also: Changes | None = None) -> EntityRow:
        """Makes a record, and writes `also` with it. Refused with DUPLICATE if its address leads to one already."""

    async def change_entity(self, type: str, id: str, change: EntityChange, now: int) -> EntityRow | None:
        """Changes a record; None if there is none."""

    async def delete_entity(self, type: str, id: str) -> bool:
        """Deletes a record, its addresses, moves and positions; whether there was one. Refused with INVALID_STATE while
        a run about it is live."""

    async def move_by_hand(self, move: MoveRow) -> MoveRow:
        """Appends a move that no run has made; the store gives it its `seq`."""

    async def journey(self, key: str, after: tuple[int, RunId, int] | None, limit: int) -> list[MoveRow]:
        """Moves of an entity in all workflows, oldest first, those after a place in the order."""

    async def positions(
        self, workflow: str, place: tuple[str, str] | None, before: int | None, limit: int
    ) -> list[Whereabouts]:
        """Entities that have a position in a workflow, at one place or at any; newest record first."""

    async def places_of(self, keys: Sequence[str]) -> list[MoveRow]:
        """The last move of each of these entities in every workflow."""

    async def crowds(self, workflow: str) -> list[CrowdRow]:
        """How many entities are at each place of a workflow, by the state of the runs that brought them there. Ordered
        by kind, place, status, asks, completed_as; None comes first."""

    async def conversion(self, workflow: str, since: int, inside: Inside = NOWHERE) -> list[Passage]:
        """Entries since an instant, by place. A place that `inside` names counts as the section that holds it: moves
        within one section are neither entries nor exits."""

    async def live_runs_of(self, key: str, workflow: str | None = None) -> list[RunId]:
        """Runs about the entity that are not over."""
