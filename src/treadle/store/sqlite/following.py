"""The log of all events in a SQLite file: the numbers of blocks, in the order of commits.

Owns the verbs of `store.following` on a file, and the notes about forgotten runs. One thread writes, so a reader sees
the numbers without gaps that could still be filled. A number is a rowid of `history`; SQLite would use those of the
newest blocks again when they are deleted, so the greatest one is noted when that happens (`event_log.last`).

Known limit: a file that was restored from a backup goes on with the numbers of the backup. Readers that have read
further are told so only until the file has come as far again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from treadle.model.ids import RunId
from treadle.store.following import EventPosition, FollowedEvent, positions
from treadle.store.seals import Tell, about_block, block_damaged, unseal
from treadle.store.sqlite.queries import SQL
from treadle.store.sqlite.reading import SqliteValues


class SqliteFollowing:
    """The verbs of `store.following`, for a store with a reader."""

    _read: Callable[..., Any]
    _values: SqliteValues
    tell: Tell

    async def events_after(self, position: str | None, limit: int = 1_000) -> list[FollowedEvent]:
        after = EventPosition.read(position) if position is not None else None
        found: list[FollowedEvent] = await self._read(
            lambda connection: _events(connection, self._values, after, limit, self.tell)
        )
        return found

    async def last_position(self) -> str:
        last: str = await self._read(_last)
        return last


def note_forgotten(connection: apsw.Connection, newest: int, dropped: int) -> None:
    """Notes that blocks up to the number `dropped` are gone; `newest` is the greatest number before that."""
    connection.execute(SQL["count_forgetting"], {"newest": newest})
    connection.execute(SQL["drop_lesser_forgets"], (dropped,))
    connection.execute(SQL["note_forgetting"], (dropped,))


def _events(
    connection: apsw.Connection, values: SqliteValues, after: EventPosition | None, limit: int, tell: Tell
) -> list[FollowedEvent]:
    """Some events. A damaged block is reported and left out: the other runs go on."""
    found: list[FollowedEvent] = []
    connection.execute("BEGIN")  # one moment for both questions
    try:
        log, forgets, dropped = _log(connection, after.forgets if after is not None else 0)
        if after is not None:
            after.check(log, dropped or 0, _last_number(connection))
        first = 0 if after is None else after.number + (0 if after.seq else 1)
        rows = connection.execute(SQL["read_blocks"], (first,))
        for number, run, workflow, entity, seq, block in rows:
            content = unseal(block, about_block(run, seq))
            if content is None:
                tell(block_damaged(connection.filename, run, seq))
                continue
            events = values.events(content)
            found += [
                FollowedEvent(place, RunId(run), workflow, entity, event)
                for place, event in positions(log, forgets, number, 0, events, after)
            ]
            if len(found) >= limit:
                break
        rows.close(True)
    finally:
        connection.execute("COMMIT")
    return found[:limit]


def _last(connection: apsw.Connection) -> str:
    connection.execute("BEGIN")
    try:
        log, forgets, _ = _log(connection, 0)
        number = _last_number(connection)
    finally:
        connection.execute("COMMIT")
    return str(EventPosition(log, forgets, number))


def _last_number(connection: apsw.Connection) -> int:
    """The greatest number that was given."""
    last: int | None = connection.execute(SQL["log_last"]).get
    return last if last is not None else connection.execute(SQL["newest_block"]).get or 0


def _log(connection: apsw.Connection, since: int) -> tuple[str, int, int | None]:
    row: Any = connection.execute(SQL["read_log"], (since,)).fetchone()
    log, forgets, dropped = row
    return log, forgets, dropped
