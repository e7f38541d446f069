"""Entities in a PostgreSQL database: records, addresses, moves, positions.

Owns the verbs of `store.entities`, and what a commit with moves writes. Promises what that port says, to any number of
nodes at once. Must not know a rule: `store.entity_ledger` says what a move means for a record.

Two transactions that make the same record meet at its address: the second waits, and then finds the first one's key. A
commit that begins a run locks the entity's record, so that a record is not deleted under a run that is just starting.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import asyncpg
from msgspec.structs import replace

from treadle.errors import StoreConflict
from treadle.model.effects import NoteMove
from treadle.model.ids import RunId
from treadle.store import statements
from treadle.store.entities import (
    BY_HAND,
    NOWHERE,
    CrowdRow,
    EntityChange,
    EntityQuery,
    EntityRow,
    Inside,
    MoveRow,
    Passage,
    Whereabouts,
)
from treadle.store.entity_ledger import Address, Ledger, key_of, with_change
from treadle.store.entity_rows import (
    address_taken,
    entity_of_row,
    live_run_refusal,
    move_values,
    position_values,
    readable,
    record_values,
    stand_of,
)
from treadle.store.postgres.columns import columns, texts
from treadle.store.postgres.service import PostgresChanges
from treadle.store.postgres.transactions import Connections, Passing
from treadle.store.seals import Tell
from treadle.store.service import Changes

SQL = statements.read("treadle.store.postgres", "entities.sql")
DATABASE = "the database"
NEWEST = (1 << 63) - 1
WIDTH = 9
"""Columns of a record in a row that also has a move."""


async def write_moves(connection: asyncpg.Connection, notes: Sequence[tuple[RunId, NoteMove]]) -> None:
    """Writes the moves of a commit, inside its transaction."""
    if not notes:
        return
    ledger = Ledger(notes)
    known = await _addresses(connection, ledger.own)
    new = [address for address in ledger.own if address not in known]
    if new:
        await _add_addresses(connection, [(*address, ledger.own[address]) for address in new])
        known = await _addresses(connection, ledger.own)
    wanted = ledger.settle(known)
    claimed = {}
    if wanted:
        await _add_addresses(connection, [(*address, key) for address, key in wanted.items()])
        claimed = await _addresses(connection, wanted)
    keys = ledger.records_wanted(new)
    kept = await connection.fetch(SQL["lock_entities"], texts(keys)) if keys else []
    records, damaged = readable(kept, DATABASE)
    gone = set(keys) - {row["entity"] for row in kept} - {ledger.own[address] for address in new}
    if gone:
        raise Passing(f"the record of {min(gone)} was deleted meanwhile")
    rows = ledger.apply(claimed, records)
    await _put(connection, [row for row in rows.records if row.key not in damaged])
    await connection.execute(SQL["add_moves"], *columns([move_values(move) for move in rows.moves]))
    await connection.execute(SQL["put_positions"], *columns([position_values(move) for move in rows.positions]))


class PostgresEntities:
    """The verbs of `store.entities`, for a store with connections."""

    _connections: Connections
    tell: Tell

    async def find_entities(self, query: EntityQuery) -> list[EntityRow]:
        sql, given = _entities_query(query)
        rows = await self._connections.read(lambda connection: connection.fetch(sql, *given))
        found = [entity_of_row(row, DATABASE, self.tell) for row in rows]
        return [row for row in found if row is not None]

    async def entity_at(self, type: str, id: str) -> EntityRow | None:
        return await self._connections.read(lambda connection: _at(connection, type, id, "read_entity_at"))

    async def create_entity(self, row: EntityRow, also: Changes | None = None) -> EntityRow:
        packed = PostgresChanges(also) if also is not None else None
        return await self._connections.write(lambda connection: _create(connection, row, packed))

    async def change_entity(self, type: str, id: str, change: EntityChange, now: int) -> EntityRow | None:
        return await self._connections.write(lambda connection: _change(connection, type, id, change, now))

    async def delete_entity(self, type: str, id: str) -> bool:
        return await self._connections.write(lambda connection: _delete(connection, type, id))

    async def move_by_hand(self, move: MoveRow) -> MoveRow:
        return await self._connections.write(lambda connection: _move_by_hand(connection, move))

    async def journey(self, key: str, after: tuple[int, RunId, int] | None, limit: int) -> list[MoveRow]:
        given = (key, *(after or (-1, "", -1)), limit)
        return await self._moves("journey", *given)

    async def positions(
        self, workflow: str, place: tuple[str, str] | None, before: int | None, limit: int
    ) -> list[Whereabouts]:
        given = (workflow, *(place or (None, None)), NEWEST if before is None else before, limit)
        rows = await self._connections.read(lambda connection: connection.fetch(SQL["positions"], *given))
        found = [(entity_of_row(row[:WIDTH], DATABASE, self.tell), stand_of(row[WIDTH:])) for row in map(tuple, rows)]
        return [Whereabouts(entity, *stand) for entity, stand in found if entity is not None]

    async def places_of(self, keys: Sequence[str]) -> list[MoveRow]:
        return await self._moves("positions_of", texts(keys))

    async def crowds(self, workflow: str) -> list[CrowdRow]:
        rows = await self._connections.read(lambda connection: connection.fetch(SQL["crowds"], workflow))
        return [CrowdRow(*row) for row in rows]

    async def conversion(self, workflow: str, since: int, inside: Inside = NOWHERE) -> list[Passage]:
        held = columns([(f"{kind}:{place}", section) for (kind, place), section in inside.items()], 2)
        rows = await self._connections.read(
            lambda connection: connection.fetch(SQL["conversion"], workflow, since, *held)
        )
        return [Passage(*row) for row in rows]

    async def live_runs_of(self, key: str, workflow: str | None = None) -> list[RunId]:
        return await self._connections.read(lambda connection: _live_runs(connection, key, workflow))

    async def _moves(self, name: str, *given: Any) -> list[MoveRow]:
        rows = await self._connections.read(lambda connection: connection.fetch(SQL[name], *given))
        return [MoveRow(*row) for row in rows]


async def moves_of_runs(connection: asyncpg.Connection, runs: Sequence[RunId]) -> list[MoveRow]:
    """The moves that these runs have made."""
    return [MoveRow(*row) for row in await connection.fetch(SQL["moves_of_runs"], texts(runs))]


async def _addresses(connection: asyncpg.Connection, wanted: Collection[Address]) -> dict[Address, str]:
    rows = await connection.fetch(SQL["read_addresses"], *columns(wanted, 2))
    return {(type, id): key for type, id, key in rows}


async def _add_addresses(connection: asyncpg.Connection, rows: Iterable[tuple[str, str, str]]) -> None:
    await connection.execute(SQL["add_addresses"], *columns(rows, 3))


async def _put(connection: asyncpg.Connection, rows: Sequence[EntityRow]) -> None:
    if rows:
        await connection.execute(SQL["put_entities"], *columns([record_values(row) for row in rows]))


def _entities_query(query: EntityQuery) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    given: list[Any] = []

    def add(name: str, *values: Any) -> None:
        known = len(given)
        conditions.append(re.sub(r"\$(\d)", lambda match: f"${known + int(match[1])}", SQL[name]))
        given.extend(values)

    if query.type is not None:
        add("if_type", query.type)
    if query.text is not None:
        add("if_text", query.text.casefold())
    if query.before is not None:
        add("if_before", query.before)
    if query.workflow is not None and query.section is not None:
        add("if_section_of_workflow", query.workflow, query.section)
    elif query.workflow is not None:
        add("if_workflow", query.workflow)
    elif query.section is not None:
        add("if_section", query.section)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    given.append(query.limit)
    return f"{SQL['find_entities']}{where} ORDER BY number DESC LIMIT ${len(given)}", given


async def _at(connection: asyncpg.Connection, type: str, id: str, statement: str) -> EntityRow | None:
    row = await connection.fetchrow(SQL[statement], type, id)
    return entity_of_row(row, DATABASE, None) if row is not None else None


async def _create(connection: asyncpg.Connection, row: EntityRow, also: PostgresChanges | None) -> EntityRow:
    key = key_of(row.type, row.id)
    known = await _at(connection, row.type, row.id, "read_entity_at")
    if known is None:
        await _add_addresses(connection, [(row.type, row.id, key)])
        if (await _addresses(connection, [(row.type, row.id)])) != {(row.type, row.id): key}:
            raise Passing("another transaction has just taken the address")
        known = await _at(connection, row.type, row.id, "read_entity_at")
    if known is not None:
        raise address_taken(row, known)
    await _put(connection, [replace(row, key=key)])
    if also is not None:
        await also.write(connection)
    made = await _at(connection, row.type, row.id, "read_entity_at")
    assert made is not None
    return made


async def _change(
    connection: asyncpg.Connection, type: str, id: str, change: EntityChange, now: int
) -> EntityRow | None:
    row = await _at(connection, type, id, "lock_entity_at")
    if row is None:
        return None
    made = with_change(row, change, now)
    if made is not row:
        await _put(connection, [made])
    return made


async def _delete(connection: asyncpg.Connection, type: str, id: str) -> bool:
    row = await _at(connection, type, id, "lock_entity_at")
    if row is None:
        return False
    if live := await _live_runs(connection, row.key, None):
        raise live_run_refusal(row, live)
    for statement in ("drop_positions", "drop_moves", "drop_addresses", "drop_entity"):
        await connection.execute(SQL[statement], row.key)
    return True


async def _move_by_hand(connection: asyncpg.Connection, move: MoveRow) -> MoveRow:
    if not await connection.fetch(SQL["lock_entities"], texts([move.key])):
        raise StoreConflict("NOT_FOUND", f"there is no entity {move.key}")
    last = await connection.fetchval(SQL["last_by_hand"], move.key)
    made = replace(move, run=BY_HAND, seq=last + 1)
    await connection.execute(SQL["add_moves"], *columns([move_values(made)]))
    await connection.execute(SQL["put_positions"], *columns([position_values(made)]))
    return made


async def _live_runs(connection: asyncpg.Connection, key: str, workflow: str | None) -> list[RunId]:
    return [RunId(row[0]) for row in await connection.fetch(SQL["live_runs"], key, workflow)]
