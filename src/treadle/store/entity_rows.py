"""Rows of entities as databases keep them: values to write, records that were read, the words of refusals.

Owns the order of the columns, the same in every database. Must not know a database.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from treadle.errors import StoreConflict
from treadle.model.ids import RunId
from treadle.store.entities import EntityRow, MoveRow
from treadle.store.entity_ledger import search_text
from treadle.store.packing import pack, unpack
from treadle.store.seals import Tell, Unreadable, about_entity, entity_damaged, read, seal, tell_log

Values = tuple[Any, ...]


def record_values(row: EntityRow) -> Values:
    """entity, type, id, name, email, attributes, created, changed, search."""
    about = about_entity((row.key, row.type, row.id, row.name, row.email, row.created, row.changed))
    kept = seal(pack(row.attributes), about)
    return row.key, row.type, row.id, row.name, row.email, kept, row.created, row.changed, search_text(row)


def entity_of_row(row: Sequence[Any], place: str, tell: Tell | None) -> EntityRow | None:
    """A record of the columns number, entity, type, id, name, email, attributes, created, changed. A damaged one is
    told and left out; without `tell` it raises StoreDamaged."""
    number, key, type, id, name, email, kept, created, changed = row
    try:
        attributes = read(kept, about_entity((key, type, id, name, email, created, changed)), unpack)
    except Unreadable:
        damage = entity_damaged(place, key)
        if tell is None:
            raise damage from None
        tell(damage)
        return None
    return EntityRow(
        type,
        id,
        name=name,
        email=email,
        attributes=attributes,
        created=created,
        changed=changed,
        key=key,
        number=number,
    )


def readable(rows: Iterable[Sequence[Any]], place: str) -> tuple[list[EntityRow], set[str]]:
    """The records that can be read, and the keys of those that cannot. A commit leaves a damaged record as it is: the
    run must go on, and a person who looks into the damage needs the evidence."""
    found: list[EntityRow] = []
    damaged: set[str] = set()
    for row in rows:
        record = entity_of_row(row, place, tell_log)
        if record is None:
            damaged.add(row[1])
        else:
            found.append(record)
    return found, damaged


def move_values(move: MoveRow) -> Values:
    """A move in the order of its fields, which is that of the columns."""
    where = move.event, move.kind, move.place, move.progress
    return (
        *(move.key, move.workflow, move.at, move.run, move.seq, *where),
        *(move.completed_as, move.set_type, move.by, move.reason),
    )


def position_values(move: MoveRow) -> Values:
    """entity, workflow, at, run, seq, kind, place."""
    return move.key, move.workflow, move.at, move.run, move.seq, move.kind, move.place


def stand_of(row: Sequence[Any]) -> tuple[MoveRow, str | None, bool]:
    """The columns of a move, followed by the status of its run and whether that run asks a person there."""
    *move, status, asks = row
    return MoveRow(*move), status, bool(asks)


def address_taken(row: EntityRow, other: EntityRow) -> StoreConflict:
    """The refusal of a record whose address leads to another."""
    now = "" if (other.type, other.id) == (row.type, row.id) else f": it is {other.type}/{other.id} now"
    return StoreConflict("DUPLICATE", f"there is an entity {row.type}/{row.id} already{now}")


def live_run_refusal(row: EntityRow, live: Sequence[RunId]) -> StoreConflict:
    """The refusal to delete a record that runs are about."""
    more = f" and {len(live) - 1} more" if len(live) > 1 else ""
    return StoreConflict("INVALID_STATE", f"run {live[0]}{more} about {row.type}/{row.id} is not over: end it first")
