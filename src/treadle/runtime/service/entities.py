"""Entities as people and programs use them: records, journeys, positions, conversion. Reached as `Client.entities`.

Owns the words; every method is a question to the store, a change of a record, or a command to a run. Must not decide
what a move means: for a live run the kernel does.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar, cast

from msgspec import UNSET, UnsetType

from treadle.errors import CommandRefused, StoreConflict
from treadle.graph.execution_graph import ExecutionGraph
from treadle.model.commands import MoveEntity
from treadle.model.ids import RunId
from treadle.runtime.command.commander import Commander
from treadle.runtime.service.entity_checks import address, attributes_of, named_text, without_null
from treadle.runtime.service.entity_shapes import (
    Conversion,
    Entity,
    EntityPlace,
    Positions,
    crowds_of,
    entity_here,
    entity_now,
    place_now,
)
from treadle.runtime.service.journeys import Leg, cost_of_run, legs_of
from treadle.runtime.service.sections import inside
from treadle.store.entities import (
    BY_HAND,
    EntityChange,
    EntityQuery,
    KeepsEntities,
    MoveRow,
    Passage,
    place_of,
)
from treadle.store.entities import EntityRow as EntityRow
from treadle.store.port import RunQuery
from treadle.store.service import Changes

Json = Any
T = TypeVar("T")

PAGE = 1_000


# A method of the class below is called `list`.
Order = tuple[int, str, int]
Found = list[Entity]
Legs = list[Leg]
Moves = list[MoveRow]
Rows = list[EntityRow]
Places = list[EntityPlace]
Passages = list[Passage]


class Entities:
    """See the module's docstring."""

    def __init__(self, commander: Commander) -> None:
        self._commander = commander
        self._store = cast(KeepsEntities, commander.store)

    async def list(
        self,
        *,
        type: str | None = None,
        workflow: str | None = None,
        section: str | None = None,
        text: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Found:
        """Entities, newest record first. `workflow`: those that are somewhere in it; `section`: those that are in one;
        `text`: part of id, name or email."""
        query = EntityQuery(type, workflow=workflow, section=section, text=text, before=before, limit=limit)
        return await self._with_places(await self._store.find_entities(query))

    async def get(self, type: str, id: str) -> Entity:
        """An entity by its address. A former address gives it as it is now, with its present type. Raises
        CommandRefused(NOT_FOUND)."""
        return (await self._with_places([await self._row(type, id)]))[0]

    async def create(
        self,
        type: str,
        id: str,
        *,
        name: str | None = None,
        email: str | None = None,
        attributes: dict[str, Json] | None = None,
    ) -> Entity:
        """Makes a record. Raises CommandRefused(DUPLICATE) if the address leads to one, also as a former address."""
        return await self.add(self.new(type, id, name=name, email=email, attributes=attributes))

    async def add(self, row: EntityRow, also: Changes | None = None) -> Entity:
        """Keeps a record that `new` has made, and `also` in the same transaction. Raises CommandRefused(DUPLICATE)."""
        try:
            return entity_now(await self._store.create_entity(row, also), [])
        except StoreConflict as conflict:
            _refuse(conflict)

    def new(
        self,
        type: str,
        id: str,
        *,
        name: str | None = None,
        email: str | None = None,
        attributes: dict[str, Json] | None = None,
    ) -> EntityRow:
        """A record that may be made. Raises CommandRefused(BAD_REQUEST)."""
        address(type, id)
        named_text("name", name)
        named_text("email", email)
        now = self._commander.clock.now()
        kept = attributes_of(attributes) if attributes is not None else {}
        return EntityRow(type, id, name=name, email=email, attributes=without_null(kept), created=now, changed=now)

    async def update(
        self,
        type: str,
        id: str,
        *,
        name: str | UnsetType | None = UNSET,
        email: str | UnsetType | None = UNSET,
        attributes: dict[str, Json] | UnsetType = UNSET,
    ) -> Entity:
        """Changes a record. `name` or `email` None removes it; `attributes` are merged into those there are, and null
        removes one (RFC 7396). Raises CommandRefused(NOT_FOUND)."""
        change = EntityChange(
            name=name if isinstance(name, str) else None,
            email=email if isinstance(email, str) else None,
            attributes=attributes_of(attributes) if not isinstance(attributes, UnsetType) else None,
            clear=tuple(field for field, given in (("name", name), ("email", email)) if given is None),
        )
        named_text("name", change.name)
        named_text("email", change.email)
        row = await self._store.change_entity(type, id, change, self._commander.clock.now())
        return (await self._with_places([_found(row, type, id)]))[0]

    async def delete(self, type: str, id: str) -> None:
        """Deletes a record with its addresses and its journey. Raises CommandRefused: NOT_FOUND, or INVALID_STATE while
        a run about it is live."""
        try:
            deleted = await self._store.delete_entity(type, id)
        except StoreConflict as conflict:
            _refuse(conflict)
        if not deleted:
            _found(None, type, id)

    async def journey(self, type: str, id: str, *, before: Order | None = None, limit: int | None = None) -> Legs:
        """Every move, run by run, newest run first; a move by hand is a leg of its own. `before` the `first` of a leg:
        the legs that began earlier. Costs are read from the histories of the runs: a run that was forgotten, or whose
        history was trimmed, has none. Raises CommandRefused(NOT_FOUND)."""
        row = await self._row(type, id)
        moves: Moves = []
        while page := await self._store.journey(row.key, moves[-1].order if moves else None, PAGE):
            moves += page
        legs = [leg for leg in reversed(legs_of(moves)) if before is None or leg.first < before]
        return [await self._told(leg) for leg in legs[:limit]]

    async def move(
        self,
        type: str,
        id: str,
        workflow: str,
        *,
        node: str | None = None,
        section: str | None = None,
        reason: str | None = None,
        by: str = "operator",
        request: str = "",
    ) -> Entity:
        """Moves an entity by hand to a node or a section of a workflow. If runs of that workflow about it are live,
        each of them records the move: in a section the entity stays there and travels with them no longer, from a node
        the next visit takes it along. Their tokens do not move. Raises CommandRefused."""
        row = await self._row(type, id)
        if (node is None) == (section is None):
            raise CommandRefused("BAD_REQUEST", "an entity is moved either to a node or to a section")
        named_text("section", section)
        graph = await self._commander.library.graph(workflow)
        if graph is None:
            raise CommandRefused("NOT_FOUND", f"there is no workflow {workflow!r}")
        if node is not None and node not in graph.nodes:
            raise CommandRefused("NOT_FOUND", f"{workflow!r} has no node {node!r}")
        has_moved = False
        for run in await self._store.live_runs_of(row.key, workflow):
            has_moved |= await self._moved(run, MoveEntity(node, section, by, reason), request)
        if not has_moved:
            kind, place = place_of(node, None, section)
            now = self._commander.clock.now()
            move = MoveRow(
                row.key, workflow, now, BY_HAND, seq=0, event="moved", kind=kind, place=place, by=by, reason=reason
            )
            try:
                await self._store.move_by_hand(move)
            except StoreConflict as conflict:
                _refuse(conflict)
        return await self.get(row.type, row.id)

    async def positions(
        self,
        workflow: str,
        *,
        node: str | None = None,
        edge: str | None = None,
        section: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Positions:
        """Who is where in a workflow: all places with how many are there, and a page of the entities. Raises
        CommandRefused(NOT_FOUND)."""
        await self._known(workflow)
        place = place_of(node, edge, section)
        wanted = None if place[0] == "nowhere" else place
        here = await self._store.positions(workflow, wanted, before, limit)
        crowds = crowds_of(await self._store.crowds(workflow))
        return Positions(workflow, crowds, [entity_here(one) for one in here])

    async def conversion(self, workflow: str, since: int = 0) -> Conversion:
        """Of the entries into each edge, section and node since an instant: how many there were, how many of them have
        left again, how many were followed by a completion as success, and how long those that left had stayed. A
        section of the drawing that holds nodes is entered with the first of them and left with the last. Raises
        CommandRefused(NOT_FOUND)."""
        graph = await self._known(workflow)
        library = self._commander.library
        held = inside(await library.drawing(workflow, graph.version), graph)
        passages = await self._store.conversion(workflow, since)
        of = {kind: [one for one in passages if one.kind == kind] for kind in ("edge", "section", "node")}
        if held:
            of["section"] = [
                one for one in await self._store.conversion(workflow, since, held) if one.kind == "section"
            ]
        return Conversion(workflow, since, of["edge"], of["section"], of["node"])

    async def _known(self, workflow: str) -> ExecutionGraph:
        graph = await self._commander.library.graph(workflow)
        if graph is None:
            raise CommandRefused("NOT_FOUND", f"there is no workflow {workflow!r}")
        return graph

    async def _row(self, type: str, id: str) -> EntityRow:
        return _found(await self._store.entity_at(type, id), type, id)

    async def _with_places(self, rows: Rows) -> Found:
        places: dict[str, Places] = {}
        for move in await self._store.places_of([row.key for row in rows]) if rows else ():
            places.setdefault(move.key, []).append(place_now(move))
        return [entity_now(row, places.get(row.key, [])) for row in rows]

    async def _moved(self, run: RunId, command: MoveEntity, request: str) -> bool:
        """Whether the run has recorded the move. One that has ended meanwhile has not."""
        answer = await self._commander.ask(run, command, request=f"{request}:{run}" if request else "")
        if answer.rejection is None:
            return True
        if answer.rejection.kind in ("INVALID_STATE", "NOT_FOUND"):
            return False
        raise CommandRefused(answer.rejection.kind, answer.rejection.message)

    async def _told(self, leg: Leg) -> Leg:
        """A leg with the status and the cost of its run, as far as they are known."""
        rows = await self._commander.store.find_runs(RunQuery(run=RunId(leg.run))) if leg.run is not None else []
        if not rows:
            return leg
        row = rows[0]
        graph = await self._commander.library.graph(row.workflow, row.version)
        spent = cost_of_run(await self._commander.store.history(row.run), graph, row) if graph is not None else None
        return leg.of(row, spent)


def _found(row: EntityRow | None, type: str, id: str) -> EntityRow:
    if row is None:
        raise CommandRefused("NOT_FOUND", f"there is no entity {type}/{id}")
    return row


def _refuse(conflict: StoreConflict) -> NoReturn:
    raise CommandRefused(conflict.kind, str(conflict).partition(": ")[2]) from None
