"""History by day: making the partition that is written, and dropping old ones.

Owns the partitions of `history` and the row of `calendar`. Promises that a day's partition exists before the day
begins, that the day never goes back, and that no block of a kept run is dropped. Must not make others wait: work that
needs a lock held by another transaction is put off.

Theory of operation
    A block belongs to the day on which the database wrote it. That day is not read from the clock but from a row. The
    first node that notices midnight (UTC) moves the row on, in the transaction that makes the new partition. So every
    block has a partition, no default partition is needed, and nothing has to be made ahead: if no node can make one,
    yesterday's is used. Clocks may be set back; the day stays. Each run has its first and its last day, and its history
    is read from the partitions between them only.

        history_first │ history_20261115 │ history_20261116 ◄── blocks of today

    When a run is forgotten, its blocks of earlier days stay where they are, unseen (its row is gone; a new run of the
    same name begins on a later day, or today, whose blocks are deleted). A partition without a block of any kept run is
    dropped: that costs the same for ten blocks and ten million, and leaves nothing to vacuum. If few blocks among many
    are kept, those of runs that live for months, they are moved to today's partition first.

Failure cases
    two nodes at midnight      the second finds the row locked and leaves it to the first
    killed in between          partition and day are one transaction
    an open transaction        making a partition does not wait for readers or writers. Dropping one does, for LOCK_MS
                               at most: then it is left for the next time
    no right to make tables    history stays in the last partition; `facts` shows how old its day is
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, timedelta
from time import monotonic

import asyncpg
import msgspec

from treadle.errors import StoreUnavailable
from treadle.store.postgres.columns import texts
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.transactions import Connections

LOOK_S = 60.0
"""How late midnight may be noticed."""
SWEEP_S = 600.0
LOCK_MS = 50
"""How long dropping a partition waits for its lock. All readers of history wait behind it as long."""
DAY = timedelta(days=1)
MOVED_SHARE = 0.1
MOVED_MIN, MOVED_MAX = 100, 1_000
"""Share of a partition's blocks that is moved. Moving more costs more than waiting until they are forgotten, too. A few
blocks are always moved, because a quiet store would otherwise keep a partition for every day."""
LONG_S = 600.0


class Partition(msgspec.Struct, frozen=True):
    """One table of blocks: of the days from `begin` until before `end`."""

    name: str
    begin: date
    end: date
    blocks: float
    """Number of blocks, as the server estimates; negative if it does not know."""


class Days:
    """Makes and drops the partitions of one database, now and then."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._look_at = 0.0
        self._sweep_at = 0.0

    @property
    def is_due(self) -> bool:
        return monotonic() >= self._look_at

    async def look(self) -> None:
        """Moves on to a new day, if there is one."""
        self._look_at = monotonic() + LOOK_S
        with suppress(StoreUnavailable, asyncpg.PostgresError):
            if await self._connections.read(lambda connection: connection.fetchval(SQL["is_another_day"])):
                await self._connections.write(turn)

    async def sweep(self) -> None:
        """Drops partitions that hold only forgotten runs; not too often."""
        if monotonic() >= self._sweep_at:
            self._sweep_at = monotonic() + SWEEP_S
            with suppress(StoreUnavailable, asyncpg.PostgresError):
                for partition in await self._connections.write(old_partitions):
                    await self._clear(partition)

    async def _clear(self, partition: Partition) -> None:
        async def move_kept(connection: asyncpg.Connection) -> bool:
            return await clear(connection, partition)

        async def drop(connection: asyncpg.Connection) -> None:
            await connection.execute(f"SET LOCAL lock_timeout = {LOCK_MS}")
            await connection.execute(f"DROP TABLE IF EXISTS {partition.name}")

        if await self._connections.write(move_kept):
            with suppress(StoreUnavailable):
                await self._connections.write(drop)


async def turn(connection: asyncpg.Connection) -> None:
    """Begins the next day with its partition, unless another node is doing it."""
    day: date | None = await connection.fetchval(SQL["begin_day"])
    if day is not None:
        await make_partition(connection, day)


async def make_partition(connection: asyncpg.Connection, day: date) -> None:
    """Creates the partition first and attaches it then: neither waits for readers or writers of history."""
    name = f"history_{day:%Y%m%d}"
    await connection.execute(f"CREATE TABLE {name} (LIKE history INCLUDING ALL)")
    bounds = f"FROM ('{day.isoformat()}') TO ('{(day + DAY).isoformat()}')"
    await connection.execute(f"ALTER TABLE history ATTACH PARTITION {name} FOR VALUES {bounds}")


async def old_partitions(connection: asyncpg.Connection) -> list[Partition]:
    """The partitions that are not written any more, oldest first."""
    await connection.execute("SET LOCAL datestyle = ISO")
    day: date = await connection.fetchval(SQL["read_day"])
    found = [_partition(*row) for row in await connection.fetch(SQL["partitions"])]
    return sorted((one for one in found if one.end < day), key=lambda one: one.end)


async def clear(connection: asyncpg.Connection, partition: Partition) -> bool:
    """Moves the few blocks of kept runs to today's partition. Returns whether the partition can be dropped. If much is
    kept, that is seen at once; if nothing is, every block is read, for the last time."""
    few = min(max(int(partition.blocks * MOVED_SHARE), MOVED_MIN), MOVED_MAX)
    question = SQL["kept_blocks"].replace("FROM history", f"FROM {partition.name}")
    kept = await connection.fetch(question, few + 1, timeout=LONG_S)
    if len(kept) > few:
        return False
    if kept:
        day: date = await connection.fetchval(SQL["read_day"])
        runs = texts({row[0] for row in kept})
        await connection.fetch(SQL["hold_runs"], runs)
        await connection.execute(SQL["move_blocks"], runs, partition.begin, partition.end, day)
        await connection.execute(SQL["note_moved"], runs, day)
    return True


def _partition(name: str, bound: str, blocks: float) -> Partition:
    begin, end = (re.search(rf"{word} \('([\d-]+)'\)", bound) for word in ("FROM", "TO"))
    assert end is not None
    return Partition(name, _date(begin), _date(end), blocks)


def _date(found: re.Match[str] | None) -> date:
    return date.fromisoformat(found[1]) if found is not None else date.min
