"""Entities in the file: records, addresses, moves, positions.

Owns the verbs of `store.entities`, and what a commit with moves writes. Promises what that port says. Must not know a
rule: `store.entity_ledger` says what a move means for a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import apsw
import msgspec
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
from treadle.store.entity_ledger import Ledger, key_of, with_change
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
from treadle.store.passages import counted
from treadle.store.seals import Tell
from treadle.store.service import Changes
from treadle.store.sqlite.service import SqliteChanges

SQL = statements.read("treadle.store.sqlite", "entities.sql")
NEWEST = (1 << 63) - 1
WIDTH = 9
"""Columns of a record in a row that also has a move."""

Row = tuple[Any, ...]
T = TypeVar("T")


def write_moves(connection: apsw.Connection, notes: Sequence[tuple[RunId, NoteMove]]) -> None:
    """Writes the moves of a commit, inside its transaction."""
    ledger = Ledger(notes)
    new = []
    known = {}
    for address, key in ledger.own.items():
        kept = connection.execute(SQL["read_address"], address).get
        if kept is None:
            new.append(address)
            connection.execute(SQL["add_address"], (*address, key))
        known[address] = kept or key
    claimed = {}
    for address, key in ledger.settle(known).items():
        connection.execute(SQL["add_address"], (*address, key))
        claimed[address] = connection.execute(SQL["read_address"], address).get
    kept = [
        row for key in ledger.records_wanted(new) if (row := connection.execute(SQL["read_entity"], (key,)).fetchone())
    ]
    records, damaged = readable(kept, connection.filename)
    rows = ledger.apply(claimed, records)
    written = [record_values(row) for row in rows.records if row.key not in damaged]
    connection.executemany(SQL["put_entity"], written)
    connection.executemany(SQL["add_move"], [move_values(move) for move in rows.moves])
    connection.executemany(SQL["put_position"], [position_values(move) for move in rows.positions])


class SqliteEntities:
    """The verbs of `store.entities`, for a store that reads and writes on threads of its own."""

    tell: Tell

    async def _write(self, work: Callable[[apsw.Connection], T]) -> T:
        raise NotImplementedError

    async def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        raise NotImplementedError

    async def find_entities(self, query: EntityQuery) -> list[EntityRow]:
        return await self._read(lambda connection: _find(connection, query, self.tell))

    async def entity_at(self, type: str, id: str) -> EntityRow | None:
        return await self._read(lambda connection: _at(connection, type, id))

    async def create_entity(self, row: EntityRow, also: Changes | None = None) -> EntityRow:
        packed = SqliteChanges(also) if also is not None else None
        return await self._write(lambda connection: _create(connection, row, packed))

    async def change_entity(self, type: str, id: str, change: EntityChange, now: int) -> EntityRow | None:
        return await self._write(lambda connection: _change(connection, type, id, change, now))

    async def delete_entity(self, type: str, id: str) -> bool:
        return await self._write(lambda connection: _delete(connection, type, id))

    async def move_by_hand(self, move: MoveRow) -> MoveRow:
        return await self._write(lambda connection: _move_by_hand(connection, move))

    async def journey(self, key: str, after: tuple[int, RunId, int] | None, limit: int) -> list[MoveRow]:
        given = (key, *(after or (-1, "", -1)), limit)
        return await self._read(lambda connection: _moves(connection.execute(SQL["journey"], given)))

    async def positions(
        self, workflow: str, place: tuple[str, str] | None, before: int | None, limit: int
    ) -> list[Whereabouts]:
        given = (workflow, NEWEST if before is None else before, limit, *(place or ()))
        return await self._read(lambda connection: _positions(connection, given, self.tell))

    async def places_of(self, keys: Sequence[str]) -> list[MoveRow]:
        wanted = _json(keys)
        return await self._read(lambda connection: _moves(connection.execute(SQL["positions_of"], (wanted,))))

    async def crowds(self, workflow: str) -> list[CrowdRow]:
        def work(connection: apsw.Connection) -> list[CrowdRow]:
            rows: Iterable[Row] = connection.execute(SQL["crowds"], (workflow,))
            return [
                CrowdRow(kind, place, status, bool(asks), ended, count)
                for kind, place, status, asks, ended, count in rows
            ]

        return await self._read(work)

    async def conversion(self, workflow: str, since: int, inside: Inside = NOWHERE) -> list[Passage]:
        def work(connection: apsw.Connection) -> list[Passage]:
            rows: Any = connection.execute(SQL["chains"], (workflow,))
            return counted(rows, since, inside)

        return await self._read(work)

    async def live_runs_of(self, key: str, workflow: str | None = None) -> list[RunId]:
        return await self._read(lambda connection: _live_runs(connection, key, workflow))


def moves_of_runs(connection: apsw.Connection, runs: Sequence[RunId]) -> list[MoveRow]:
    """The moves that these runs have made."""
    return _moves(connection.execute(SQL["moves_of_runs"], (_json(runs),)))


def _json(texts: Sequence[str]) -> str:
    return msgspec.json.encode(list(texts)).decode()


def _moves(rows: Iterable[Row]) -> list[MoveRow]:
    return [MoveRow(*row) for row in rows]


def _find(connection: apsw.Connection, query: EntityQuery, tell: Tell) -> list[EntityRow]:
    fields = ("type", "text", "before", "workflow", "section")
    given = {name: value for name in fields if (value := getattr(query, name)) is not None}
    conditions = [f"if_{name}" for name in given]
    if query.workflow is not None and query.section is not None:
        conditions = [name for name in conditions if name not in ("if_workflow", "if_section")]
        conditions.append("if_section_of_workflow")
    if query.text is not None:
        given["text"] = query.text.casefold()
    where = f" WHERE {' AND '.join(SQL[name] for name in conditions)}" if conditions else ""
    sql = f"{SQL['find_entities']}{where} ORDER BY number DESC LIMIT :limit"
    rows: Iterable[Row] = connection.execute(sql, {**given, "limit": query.limit})
    found = [entity_of_row(row, connection.filename, tell) for row in rows]
    return [row for row in found if row is not None]


def _positions(connection: apsw.Connection, given: Row, tell: Tell) -> list[Whereabouts]:
    rows: Iterable[Row] = connection.execute(SQL["positions" if len(given) == 3 else "positions_at"], given)
    found = [(entity_of_row(row[:WIDTH], connection.filename, tell), stand_of(row[WIDTH:])) for row in rows]
    return [Whereabouts(entity, *stand) for entity, stand in found if entity is not None]


def _read(connection: apsw.Connection, key: str, tell: Tell | None) -> EntityRow | None:
    row = connection.execute(SQL["read_entity"], (key,)).fetchone()
    return entity_of_row(row, connection.filename, tell) if row is not None else None


def _at(connection: apsw.Connection, type: str, id: str) -> EntityRow | None:
    key = connection.execute(SQL["read_address"], (type, id)).get
    return _read(connection, key, None) if key is not None else None


def _create(connection: apsw.Connection, row: EntityRow, also: SqliteChanges | None) -> EntityRow:
    other = _at(connection, row.type, row.id)
    if other is not None:
        raise address_taken(row, other)
    if also is not None:
        also.write(connection)
    key = key_of(row.type, row.id)
    connection.execute(SQL["add_address"], (row.type, row.id, key))
    connection.execute(SQL["put_entity"], record_values(replace(row, key=key)))
    made = _read(connection, key, None)
    assert made is not None
    return made


def _change(connection: apsw.Connection, type: str, id: str, change: EntityChange, now: int) -> EntityRow | None:
    row = _at(connection, type, id)
    if row is None:
        return None
    made = with_change(row, change, now)
    if made is not row:
        connection.execute(SQL["put_entity"], record_values(made))
    return made


def _delete(connection: apsw.Connection, type: str, id: str) -> bool:
    row = _at(connection, type, id)
    if row is None:
        return False
    if live := _live_runs(connection, row.key, None):
        raise live_run_refusal(row, live)
    for statement in ("drop_positions", "drop_moves", "drop_addresses", "drop_entity"):
        connection.execute(SQL[statement], (row.key,))
    return True


def _move_by_hand(connection: apsw.Connection, move: MoveRow) -> MoveRow:
    if _read(connection, move.key, None) is None:
        raise StoreConflict("NOT_FOUND", f"there is no entity {move.key}")
    last = connection.execute(SQL["last_by_hand"], (move.key,)).get or 0
    made = replace(move, run=BY_HAND, seq=last + 1)
    connection.execute(SQL["add_move"], move_values(made))
    connection.execute(SQL["put_position"], position_values(made))
    return made


def _live_runs(connection: apsw.Connection, key: str, workflow: str | None) -> list[RunId]:
    return [run for (run,) in connection.execute(SQL["live_runs"], (key, workflow))]
