"""Forgetting of runs: everything that belongs to them alone is deleted, shared content stays.

Owns the order of deletions. Promises not to touch a run that is not finished (it was revived after it was found
finished), and that a file becomes smaller when most of its runs were dropped. Runs inside one transaction of the
writer; must not read history beyond the two blocks that may stay.

Known limit: an older Treadle made files without `auto_vacuum`: their free pages are used again and not given back.
`PRAGMA auto_vacuum = 2; VACUUM` with the `sqlite3` tool, while nobody has the file open, changes that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from treadle.model.codec import pack_events, unpack_events
from treadle.model.ids import RunId
from treadle.store.following import shortened
from treadle.store.port import Fence
from treadle.store.seals import about_block, block_damaged, seal_block, unseal
from treadle.store.spill import marks_in
from treadle.store.sqlite.batches import check_fences
from treadle.store.sqlite.following import note_forgotten
from treadle.store.sqlite.queries import SQL
from treadle.store.sqlite.reading import fetch_blob

FREE_SHARE = 4
"""One page in this many may stay free for the next runs. Giving all pages back would move pages to and fro."""
GIVEN_BACK = 1_000
"""Pages given back with some hundred runs that are dropped: 4 MiB, some milliseconds."""


def forget(connection: apsw.Connection, runs: Sequence[RunId], fences: Sequence[Fence], history: bool) -> None:
    """Drops finished runs, or shortens them to their first and last event."""
    check_fences(connection, fences)
    newest, dropped = connection.execute(SQL["newest_block"]).get or 0, 0
    for run in runs:
        id = connection.execute(SQL["finished_run"], (run,)).get
        if id is not None:
            dropped = max(dropped, connection.execute(SQL["newest_block_of_run"], (id,)).get or 0)
            _forget(connection, run, id, history)
    if dropped:
        note_forgotten(connection, newest, dropped)
    _shrink(connection)


def _shrink(connection: apsw.Connection) -> None:
    """Moves free pages to the end of the file, which the next checkpoint cuts off."""
    free, pages = connection.pragma("freelist_count"), connection.pragma("page_count")
    surplus = free - pages // FREE_SHARE
    if surplus > 0:
        connection.execute(f"PRAGMA incremental_vacuum({min(surplus, GIVEN_BACK)})").fetchall()


def _forget(connection: apsw.Connection, run: RunId, id: int, history: bool) -> None:
    for statement in ("drop_effects", "drop_timers", "drop_gates", "drop_work"):
        connection.execute(SQL[statement], (id,))
    connection.execute(SQL["drop_requests"], (run,))
    kept: set[bytes] = set()
    if history:
        connection.execute(SQL["drop_history"], (id,))
    else:
        kept = _shorten(connection, run, id)
    for (digest,) in connection.execute(SQL["blobs_of_run"], (run,)).fetchall():
        if digest not in kept:
            connection.execute(SQL["disown_blob"], (run, digest))
            connection.execute(SQL["drop_blob"], (digest,))
    if history:
        connection.execute(SQL["drop_run"], (id,))


def _shorten(connection: apsw.Connection, run: RunId, id: int) -> set[bytes]:
    """Keeps the first and the last event, and returns the digests they need. Marks of values stay unresolved."""
    beginning, first = _block(connection, run, id, "first_block")
    end, last = _block(connection, run, id, "last_block")
    kept = shortened(first, unpack_events(beginning)[0], last, unpack_events(end)[-1])
    connection.execute(SQL["drop_history"], (id,))
    blocks = [(number, events[-1].seq, pack_events(events)) for number, events in kept.items()]
    rows = [(number, id, seq, seal_block(run, seq, block)) for number, seq, block in blocks]
    connection.executemany(SQL["put_block"], rows)
    return {
        digest for _, _, block in blocks for digest in marks_in(block, lambda digest: fetch_blob(connection, digest))
    }


def _block(connection: apsw.Connection, run: RunId, id: int, which: str) -> tuple[bytes, int]:
    row: tuple[Any, ...] | None = connection.execute(SQL[which], (id,)).fetchone()
    assert row is not None, "every run has a history"
    seq, block, number = row
    content = unseal(block, about_block(run, seq))
    if content is None:
        raise block_damaged(connection.filename, run, seq)
    return content, number
