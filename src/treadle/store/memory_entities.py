"""Entities of the reference store: dictionaries and sorted lists, obviously correct.

Owns records, addresses and moves; positions and conversion are computed from the moves whenever they are asked for, so
that other stores can be compared with it. Promises what `store.entities` says. Must not suspend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

from msgspec.structs import replace

from treadle.errors import StoreConflict
from treadle.model.effects import NoteMove
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RUN_ENDED
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
from treadle.store.entity_ledger import Address, Ledger, key_of, search_text, with_change
from treadle.store.entity_rows import address_taken, live_run_refusal
from treadle.store.gates import GateRow
from treadle.store.memory_parts import KeptRun
from treadle.store.passages import passages
from treadle.store.service import Changes, Written


class MemoryEntities:
    """The verbs of `store.entities`, for the store in memory."""

    _runs: dict[RunId, KeptRun]
    _gates: dict[tuple[RunId, TokenId], GateRow]

    async def write(self, changes: Changes) -> Written:
        raise NotImplementedError

    def __init__(self) -> None:
        self._records: dict[str, EntityRow] = {}
        self._addresses: dict[Address, str] = {}
        self._moves: dict[str, dict[tuple[int, RunId, int], MoveRow]] = {}
        self._noted: list[tuple[RunId, NoteMove]] = []
        """Moves of the commit that is being written."""
        self._last_entity = 0

    def _write_moves(self) -> None:
        if not self._noted:
            return
        ledger = Ledger(self._noted)
        self._noted = []
        new = [address for address in ledger.own if address not in self._addresses]
        for address in new:
            self._addresses[address] = ledger.own[address]
        for address, key in ledger.settle(self._addresses).items():
            self._addresses.setdefault(address, key)
        wanted = [self._records[key] for key in ledger.records_wanted(new) if key in self._records]
        rows = ledger.apply(self._addresses, wanted)
        for row in rows.records:
            self._put(row)
        for move in rows.moves:
            self._moves.setdefault(move.key, {}).setdefault(move.order, move)

    def _put(self, row: EntityRow) -> EntityRow:
        if row.key not in self._records:
            self._last_entity += 1
            row = replace(row, number=self._last_entity)
        self._records[row.key] = row
        return row

    async def find_entities(self, query: EntityQuery) -> list[EntityRow]:
        rows = (row for row in reversed(list(self._records.values())) if self._matches(row, query))
        return list(islice(rows, query.limit))

    def _matches(self, row: EntityRow, query: EntityQuery) -> bool:
        here = [move for move in self._last_moves(row.key) if query.workflow is None or move.workflow == query.workflow]
        return (
            (query.type is None or row.type == query.type)
            and (query.text is None or query.text.casefold() in search_text(row))
            and (query.before is None or row.number < query.before)
            and (query.workflow is None or bool(here))
            and (query.section is None or any((move.kind, move.place) == ("section", query.section) for move in here))
        )

    async def entity_at(self, type: str, id: str) -> EntityRow | None:
        key = self._addresses.get((type, id))
        return self._records.get(key) if key is not None else None

    async def create_entity(self, row: EntityRow, also: Changes | None = None) -> EntityRow:
        other = await self.entity_at(row.type, row.id)
        if other is not None:
            raise address_taken(row, other)
        if also is not None:
            await self.write(also)
        key = self._addresses[row.type, row.id] = key_of(row.type, row.id)
        return self._put(replace(row, key=key))

    async def change_entity(self, type: str, id: str, change: EntityChange, now: int) -> EntityRow | None:
        row = await self.entity_at(type, id)
        return self._put(with_change(row, change, now)) if row is not None else None

    async def delete_entity(self, type: str, id: str) -> bool:
        row = await self.entity_at(type, id)
        if row is None:
            return False
        if live := await self.live_runs_of(row.key):
            raise live_run_refusal(row, live)
        self._addresses = {address: key for address, key in self._addresses.items() if key != row.key}
        self._moves.pop(row.key, None)
        del self._records[row.key]
        return True

    async def move_by_hand(self, move: MoveRow) -> MoveRow:
        if move.key not in self._records:
            raise StoreConflict("NOT_FOUND", f"there is no entity {move.key}")
        moves = self._moves.setdefault(move.key, {})
        made = replace(move, run=BY_HAND, seq=1 + sum(run == BY_HAND for _, run, _ in moves))
        moves[made.order] = made
        return made

    async def journey(self, key: str, after: tuple[int, RunId, int] | None, limit: int) -> list[MoveRow]:
        moves = self._moves.get(key, {})
        return [moves[order] for order in sorted(moves) if after is None or order > after][:limit]

    async def positions(
        self, workflow: str, place: tuple[str, str] | None, before: int | None, limit: int
    ) -> list[Whereabouts]:
        found = (
            Whereabouts(row, move, *self._stand(move))
            for row in reversed(list(self._records.values()))
            if before is None or row.number < before
            for move in self._last_moves(row.key)
            if move.workflow == workflow and place in (None, (move.kind, move.place))
        )
        return list(islice(found, limit))

    async def places_of(self, keys: Sequence[str]) -> list[MoveRow]:
        found = [move for key in set(keys) for move in self._last_moves(key)]
        return sorted(found, key=lambda move: move.order, reverse=True)

    async def crowds(self, workflow: str) -> list[CrowdRow]:
        moves = (move for key in self._moves for move in self._last_moves(key) if move.workflow == workflow)
        counts = Counter((move.kind, move.place, *self._stand(move), move.completed_as) for move in moves)
        ordered = sorted(counts, key=lambda one: (*one[:2], one[2] or "", one[3], one[4] or ""))
        return [CrowdRow(*crowd, counts[crowd]) for crowd in ordered]

    def _stand(self, move: MoveRow) -> tuple[str | None, bool]:
        """The status of the run that made the move, and whether it asks a person at that node."""
        run = self._runs.get(move.run)
        asks = move.kind == "node" and any(
            key[0] == move.run and gate.node == move.place for key, gate in self._gates.items()
        )
        return (str(run.status) if run is not None else None), asks

    async def conversion(self, workflow: str, since: int, inside: Inside = NOWHERE) -> list[Passage]:
        moves = (move for moves in self._moves.values() for move in moves.values())
        return passages(moves, workflow, since, inside)

    async def live_runs_of(self, key: str, workflow: str | None = None) -> list[RunId]:
        about = {
            move.run for move in self._moves.get(key, {}).values() if workflow is None or move.workflow == workflow
        }
        return sorted(run for run in about if run in self._runs and self._runs[run].status not in RUN_ENDED)

    def _last_moves(self, key: str) -> list[MoveRow]:
        last: dict[str, MoveRow] = {}
        for order in sorted(self._moves.get(key, {})):
            move = self._moves[key][order]
            last[move.workflow] = move
        return list(last.values())

    def _moves_of_runs(self, runs: set[RunId]) -> dict[RunId, list[MoveRow]]:
        found: dict[RunId, list[MoveRow]] = {}
        for moves in self._moves.values():
            for order in sorted(moves):
                if moves[order].run in runs:
                    found.setdefault(moves[order].run, []).append(moves[order])
        return found
