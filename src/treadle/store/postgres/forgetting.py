"""Forgetting of runs: everything that belongs to them alone is deleted; blocks of earlier days are dropped later, with
their partitions (`days`).

Owns the order of deletions. Promises not to touch a run that is not finished (it was revived after it was found
finished). Runs inside a transaction, and may be run again in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import asyncpg

from treadle.model.codec import pack_events, unpack_events
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.store.following import shortened
from treadle.store.port import Fence
from treadle.store.postgres.batches import check_fences
from treadle.store.postgres.columns import columns, texts
from treadle.store.postgres.following import note_forgotten
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.values import PostgresValues, block_of
from treadle.store.seals import seal_block

_ROWS_OF_RUNS = ("drop_effects", "drop_timers", "drop_gates", "drop_requests", "drop_work")


async def forget(connection: asyncpg.Connection, runs: Sequence[RunId], fences: Sequence[Fence], history: bool) -> None:
    """Drops finished runs, or shortens them to their first and last event."""
    await check_fences(connection, fences)
    over = [RunId(row[0]) for row in await connection.fetch(SQL["finished_runs"], texts(set(runs)))]
    if not over:
        return
    named = texts(over)
    for statement in _ROWS_OF_RUNS:
        await connection.execute(SQL[statement], named)
    # Read once the runs are locked: no block of theirs is of a later day, and none of a new run with the same name will
    # be of an earlier one.
    day: date = await connection.fetchval(SQL["read_day"])
    await note_forgotten(connection, over)
    if not history:
        await _shorten(connection, over, day)
        return
    await connection.execute(_drop_history(day), named)
    for statement in ("drop_blobs", "drop_tags", "drop_keys", "drop_item_keys", "drop_items", "drop_runs"):
        await connection.execute(SQL[statement], named)


async def _shorten(connection: asyncpg.Connection, runs: list[RunId], day: date) -> None:
    """Writes the first and the last event of the runs today, with the content they need; the other events are gone.
    Marks of values that were moved out stay unresolved."""
    first = {row["run"]: row for row in await connection.fetch(SQL["first_blocks"], texts(runs))}
    last = {row["run"]: row for row in await connection.fetch(SQL["last_blocks"], texts(runs))}
    kept: list[tuple[RunId, int, bytes, int | None]] = []
    for run in runs:
        begin, end = _events(run, first[run])[0], _events(run, last[run])[-1]
        ends = shortened(first[run]["position"] or 0, begin, last[run]["position"] or 0, end)
        blocks = [(events[-1].seq, pack_events(events), place or None) for place, events in ends.items()]
        needed = await PostgresValues(connection).fetch([run], [block for _, block, _ in blocks])
        await connection.execute(SQL["drop_other_blobs"], run, list(needed))
        kept += [(run, seq, seal_block(run, seq, block), place) for seq, block, place in blocks]
    await connection.execute(_drop_history(day), texts(runs))
    await connection.execute(SQL["keep_ends"], *columns(kept), day)
    await connection.execute(SQL["note_shortened"], texts(runs), day)


def _events(run: RunId, row: asyncpg.Record) -> list[Event]:
    return unpack_events(block_of(run, row["seq"], row["block"]))


def _drop_history(day: date) -> str:
    """The statement with the day written into it, so that only its partition is opened."""
    return SQL["drop_history"].replace("$2", f"'{day}'")
