"""Changes of records, addresses, moves and positions that the notes of one transaction lead to.

Owns the meaning of a `NoteMove` for a store, once for all of them. A store reads what the ledger asks for, in three
steps, and writes what it says. Must not know a database.

    own addresses ──► settle ──► addresses for new types ──► claim ──► records ──► apply ──► rows to write

A type that an entity is given is a new address. If another record has that address already, the entity keeps its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.model.effects import NoteMove
from treadle.model.ids import RunId
from treadle.store.entities import EntityChange, EntityRow, MoveRow, place_of

Json = Any
Address = tuple[str, str]


class LedgerRows(Struct, frozen=True):
    """Rows to write."""

    records: list[EntityRow]
    """New and changed records, whole."""
    moves: list[MoveRow]
    positions: list[MoveRow]
    """The last move of each entity in each workflow, among these."""


class Ledger:
    """The notes of one transaction. See the module's docstring."""

    def __init__(self, notes: Sequence[tuple[RunId, NoteMove]]) -> None:
        self._notes = notes
        self.own: dict[Address, str] = {_address(note): key_of(*_address(note)) for _, note in notes}
        """The addresses under which runs know their entities, each with the key of a new record."""
        self._keys: dict[Address, str] = {}
        self._wanted: set[str] = set()

    def settle(self, known: Mapping[Address, str]) -> dict[Address, str]:
        """Takes the keys that own addresses lead to. Returns addresses for new types, each with the key of the entity
        that wants it."""
        self._keys = {address: known.get(address, key) for address, key in self.own.items()}
        wanted: dict[Address, str] = {}
        for _, note in self._notes:
            if note.set_type is not None:
                wanted.setdefault((note.set_type, note.entity.id), self._keys[_address(note)])
        return wanted

    def records_wanted(self, new: Collection[Address]) -> list[str]:
        """Keys of records that change or are made; `new` are own addresses that led nowhere. In the order in which they
        are to be locked."""
        wanted = {self._keys[address] for address in new}
        wanted.update(self._keys[_address(note)] for _, note in self._notes if _changes(note))
        self._wanted = wanted
        return sorted(wanted)

    def apply(self, claimed: Mapping[Address, str], records: Iterable[EntityRow]) -> LedgerRows:
        """`claimed`: the keys that addresses for new types lead to now. `records`: those of `records_wanted` that
        exist."""
        known = {row.key: row for row in records}
        before = dict(known)
        moves: list[MoveRow] = []
        positions: dict[tuple[str, str], MoveRow] = {}
        for run, note in self._notes:
            key = self._keys[_address(note)]
            if key in self._wanted:
                new = EntityRow(note.entity.type, note.entity.id, created=note.at, changed=note.at, key=key)
                known[key] = _changed(known.get(key, new), note, claimed)
            move = move_of(key, run, note)
            moves.append(move)
            last = positions.get((key, note.workflow))
            if last is None or last.order < move.order:
                positions[key, note.workflow] = move
        wanted = {key: row for key, row in known.items() if before.get(key) != row}
        return LedgerRows([wanted[key] for key in sorted(wanted)], moves, list(positions.values()))


def key_of(type: str, id: str) -> str:
    """The key of a record that is made under this address."""
    return f"{type}/{id}"


def move_of(key: str, run: RunId, note: NoteMove) -> MoveRow:
    """A note as a row."""
    kind, place = place_of(note.node, note.edge, note.section)
    return MoveRow(
        key,
        note.workflow,
        note.at,
        run,
        note.seq,
        note.event,
        kind=kind,
        place=place,
        progress=note.progress,
        completed_as=note.completed_as,
        set_type=note.set_type,
        by=note.by,
        reason=note.reason,
    )


def with_change(row: EntityRow, change: EntityChange, now: int) -> EntityRow:
    """A record after a person's change; the same one if nothing is different."""
    made = replace(
        row,
        name=None if "name" in change.clear else change.name if change.name is not None else row.name,
        email=None if "email" in change.clear else change.email if change.email is not None else row.email,
        attributes=merged(row.attributes, change.attributes) if change.attributes is not None else row.attributes,
    )
    return made if made == row else replace(made, changed=now)


def merged(target: Json, patch: Json) -> Json:
    """A JSON merge patch, carried out (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def search_text(row: EntityRow) -> str:
    """The text in which a query's `text` is searched."""
    return "\n".join(part.casefold() for part in (row.id, row.name, row.email) if part is not None)


def _address(note: NoteMove) -> Address:
    return note.entity.type, note.entity.id


def _changes(note: NoteMove) -> bool:
    """Whether a note may change a record that exists. Every first move of a run counts: its lock keeps the record."""
    return note.event == "entered" or note.set_type is not None


def _changed(row: EntityRow, note: NoteMove, claimed: Mapping[Address, str]) -> EntityRow:
    given = note.entity
    made = row
    if given.name is not None or isinstance(given.attributes, dict):
        attributes = given.attributes if isinstance(given.attributes, dict) else None
        made = with_change(row, EntityChange(name=given.name, attributes=attributes), note.at)
    wanted = note.set_type
    if wanted is not None and wanted != made.type and claimed.get((wanted, made.id)) == row.key:
        made = replace(made, type=wanted, changed=note.at)
    return made
