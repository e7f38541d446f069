"""The log of all events in a PostgreSQL database: positions that many engines give at once, read without a gap.

Owns the verbs of `store.following` on a database, and the horizon: how far the log is complete. Must not make commits
wait, except for a moment where a position stays away.

Theory of operation
    A sequence gives every block its position inside the statement that commits it, after the leases of its shards are
    locked. Commits of several engines overlap: position 7 may be visible before 6. The horizon is the greatest position
    up to which every one is committed or never will be. Events are given up to the horizon only.

        … 4  5  6  7  ·  9  10        ·  not visible: under way, undone, or forgotten
                    ▲ horizon

    The horizon moves over positions that are visible one after the other, which is the case but for moments. If one
    stays away for LATE_S, its commit was undone, or its server crashed (a sequence then jumps), or its run was
    forgotten. The leases tell: a commit holds those of its shards until it ends. A node that reads the sequence and
    then holds every lease for a moment knows that all positions up to that one are settled. No other transaction of the
    server matters, however long it takes.

    A position that was given to a reader is below the horizon of the node that gave it. Another node that is asked for
    it moves its own horizon by the leases: a position itself proves nothing, because its text may be of another
    database, or made up. One that is then still ahead was never given here.
"""

from __future__ import annotations

from datetime import date, timedelta
from time import monotonic
from typing import Any

import asyncpg

from treadle.model.ids import RunId
from treadle.store.following import EventPosition, FollowedEvent, positions
from treadle.store.postgres.columns import texts
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.transactions import Connections
from treadle.store.postgres.values import DATABASE, PostgresValues
from treadle.store.seals import Tell, about_block, block_damaged, unseal

LATE_S = 0.1
"""How long a position may stay away before the leases are asked. Commits take milliseconds."""
NEVER = (1 << 63) - 1
DAY = timedelta(days=1)


class PostgresFollowing:
    """The verbs of `store.following`, for a store with connections."""

    _connections: Connections
    tell: Tell
    _horizon: int = -1
    """-1: not known yet."""
    _waits_since: float | None = None
    """When a position was found to stay away."""

    async def events_after(self, position: str | None, limit: int = 1_000) -> list[FollowedEvent]:
        after = EventPosition.read(position) if position is not None else None
        if self._horizon < 0 or self._is_late or (after is not None and after.number > self._horizon):
            await self._settle()
        horizon = self._horizon  # as it is before the log is read: what settles meanwhile may not be seen
        first = 0 if after is None else after.number + (0 if after.seq else 1)
        day = date.fromordinal(after.day) - DAY if after is not None and after.day > 1 else date.min
        sql = SQL["read_log"].replace("$5", f"'{day}'" if day > date.min else "'-infinity'")
        given = (first, limit, after.forgets if after is not None else 0, NEVER)
        return await self._connections.read(
            lambda connection: self._events(connection, sql, given, after, limit, horizon)
        )

    async def last_position(self) -> str:
        await self._settle()
        log, forgets, day = await self._connections.read(
            lambda connection: connection.fetchrow(SQL["where_log_stands"])
        )
        return str(EventPosition(log, forgets, self._horizon, 0, day.toordinal()))

    @property
    def _is_late(self) -> bool:
        return self._waits_since is not None and monotonic() - self._waits_since > LATE_S

    async def _settle(self) -> None:
        """Moves the horizon to the greatest position that was given so far, when every commit that may have given it
        has ended."""

        async def work(connection: asyncpg.Connection) -> int:
            last, is_called = await connection.fetchrow(SQL["greatest_position"])
            await connection.fetch(SQL["hold_leases"])
            return int(last) if is_called else 0

        self._waits_since = None
        settled = await self._connections.write(work)
        self._horizon = max(self._horizon, settled)

    async def _events(
        self,
        connection: asyncpg.Connection,
        sql: str,
        given: tuple[Any, ...],
        after: EventPosition | None,
        limit: int,
        horizon: int,
    ) -> list[FollowedEvent]:
        rows = await connection.fetch(sql, *given)
        log, forgets, dropped = rows[0]["log"], rows[0]["forgets"], rows[0]["dropped"]
        if after is not None:
            after.check(log, dropped or 0, horizon)
        blocks = [row for row in self._complete(rows, horizon) if row["workflow"] is not None]
        sound, runs = [], []
        for row in blocks:
            content = unseal(row["block"], about_block(row["run"], row["seq"]))
            if content is None:
                self.tell(block_damaged(DATABASE, row["run"], row["seq"]))
            else:
                sound.append((row, content))
                runs.append(RunId(row["run"]))
        values = PostgresValues(connection)
        unpacked = await values.decode(values.events, runs, [content for _, content in sound])
        found = [
            FollowedEvent(place, RunId(row["run"]), row["workflow"], row["entity"], event)
            for (row, _), events in zip(sound, unpacked, strict=True)
            for place, event in positions(log, forgets, row["position"], row["day"].toordinal(), events, after)
        ]
        return found[:limit]

    def _complete(self, rows: list[asyncpg.Record], horizon: int) -> list[asyncpg.Record]:
        """The rows up to the horizon, which moves over rows that follow each other."""
        complete = []
        for row in rows:
            position = row["position"]
            if position is None:
                break
            if position > horizon + 1:
                if self._waits_since is None:
                    self._waits_since = monotonic()
                break
            horizon = max(horizon, position)
            complete.append(row)
        else:
            self._waits_since = None
        if horizon > self._horizon:
            self._horizon, self._waits_since = horizon, None
        return complete


async def note_forgotten(connection: asyncpg.Connection, runs: list[RunId]) -> None:
    """Notes up to which position blocks are gone, before they go."""
    dropped: int | None = await connection.fetchval(SQL["last_position_of"], texts(runs))
    if dropped is not None:
        number = await connection.fetchval(SQL["count_forgetting"])
        await connection.execute(SQL["drop_lesser_forgets"], dropped)
        await connection.execute(SQL["note_forgetting"], number, dropped)
