"""One end of a move in a PostgreSQL database: rows out in pages, rows in, the mark, the seal.

Owns two connections of its own. Promises what `store.transfer` says. Must not interpret rows.

The seal is a constraint that only rows of the move satisfy, on the tables that a process without a lease can write and
on the leases themselves; sealing ends every lease. A process that has the database open (a client about to submit a
request, an engine that was stopped for a while) is refused by the database itself.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from importlib.resources import files
from typing import Any, TypeVar

import asyncpg
import msgspec

from treadle.errors import OwnedElsewhere, StoreConflict, StorePlaceError
from treadle.store import statements
from treadle.store.moved_work import as_task
from treadle.store.packing import pack
from treadle.store.postgres.columns import columns
from treadle.store.postgres.connect import migrate
from treadle.store.postgres.derived_rows import write_derived
from treadle.store.postgres.faults import SEAL
from treadle.store.postgres.moved_rows import OF_ENTITIES, with_wish
from treadle.store.postgres.transactions import Connections
from treadle.store.rows import shard_of
from treadle.store.seals import Judge, Seals
from treadle.store.transfer import BYTES_MAX, ROWS_MAX, SHELVES, After, Mark, Page, refusal

SQL = statements.read("treadle.store.postgres", "transfer.sql")
FIRST: dict[str, After] = {
    "documents": ("", "", 0),
    "runs": (0,),
    "batch_items": ("",),
    "history": ("", 0),
    "outbox": (False, "", 0),
    "timers": ("", 0),
    "gates": ("", -1),
    "requests": (0,),
    "blobs": ("", b""),
    "log_entries": ("", 0),
    "log_heads": ("",),
    "notes": ("",),
} | OF_ENTITIES
"""The positions before the first row of each shelf."""
SHARDED = frozenset({"runs", "outbox", "timers", "requests"})
"""Shelves whose rows have the shard of their run."""
_SCHEMA = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
TABLES = tuple(
    table
    for table in re.findall(r"^CREATE TABLE (\w+) \(", _SCHEMA, re.MULTILINE)
    if table not in ("leases", "nodes", "calendar")
)
"""Tables that a move fills. Not the others: epochs only grow, the calendar never goes back, nodes come and go."""
SEALED_TABLES = (
    *("leases", "nodes", "work", "requests", "documents", "blobs", "runs", "log_entries", "log_heads", "notes"),
    *("entities", "moves"),
)
NUMBER = SHELVES["outbox"].index("id")
LOOK_AGAIN_S = 1.0
"""Time between two checks for an owner of the database; leases last ten times as long."""
SHARDS_MAX = 1_024
"""A number of the outbox is a multiple of it plus the shard (schema.sql)."""
COUNT_S = 3_600.0
"""Timeout of a count, which reads every row; no other process waits for it."""

_unpack_mark = msgspec.msgpack.Decoder(Mark).decode
T = TypeVar("T")
Work = Callable[[asyncpg.Connection], Awaitable[T]]


class PostgresTransfer:
    """See the module's docstring; the verbs are documented in `store.transfer`. Made by `open`."""

    def __init__(self, connections: Connections, shards: int) -> None:
        self._connections = connections
        self._shards = shards
        self.place = connections.place

    @classmethod
    async def open(cls, dsn: str, *, shards: int, create: bool) -> PostgresTransfer:
        """`shards` is for a database that is new. Raises `StorePlaceError`."""
        if not create:
            await _check_ours(dsn)
        settled = await migrate(dsn, shards)
        return cls(await Connections.open(dsn, 2), settled)

    async def close(self) -> None:
        await self._connections.close()

    async def take(self, wait: bool) -> None:
        while (owner := await self._connections.read(_holders)) and wait:
            await asyncio.sleep(LOOK_AGAIN_S)
        self._check_free(owner)

    def _check_free(self, owner: str) -> None:
        if owner:
            raise OwnedElsewhere(self.place, owner)

    async def mark(self) -> Mark | None:
        return await self._connections.read(read_mark)

    async def seal(self, mark: Mark) -> None:
        async def work(connection: asyncpg.Connection) -> None:
            await self._seal(connection, mark)

        await self._connections.write(work)

    async def _seal(self, connection: asyncpg.Connection, mark: Mark) -> None:
        assert mark.move.isalnum(), "it becomes part of a statement"
        await _unseal(connection)
        for table in SEALED_TABLES:  # locked exclusively until the end of the transaction
            await connection.execute(
                f"ALTER TABLE {table} ADD CONSTRAINT {SEAL} "
                f"CHECK (coalesce(current_setting('treadle.move', true), '') = '{mark.move}') NOT VALID"
            )
        self._check_free(await _holders(connection))
        await connection.execute(SQL["pass_seal"], mark.move)
        await connection.execute(SQL["end_leases"])
        await connection.execute(SQL["write_mark"], pack(mark))

    async def unseal(self) -> None:
        async def work(connection: asyncpg.Connection) -> None:
            await _unseal(connection)
            await connection.execute(SQL["drop_mark"])

        await self._connections.write(work)

    async def is_empty(self) -> bool:
        async def work(connection: asyncpg.Connection) -> bool:
            return not await connection.fetchval(SQL["has_something"])

        return await self._connections.read(work)

    async def begin(self, mark: Mark) -> None:
        async def work(connection: asyncpg.Connection) -> None:
            await _unseal(connection)
            await connection.execute(f"TRUNCATE {', '.join(TABLES)} RESTART IDENTITY")
            await connection.execute(SQL["begin_log"])
            await self._seal(connection, mark)

        await self._connections.write(work)

    async def counts(self) -> dict[str, int]:
        async def work(connection: asyncpg.Connection) -> dict[str, int]:
            return {
                shelf: await connection.fetchval(
                    SQL.get(f"count_{shelf}", f"SELECT count(*) FROM {shelf}"), timeout=COUNT_S
                )
                for shelf in SHELVES
            }

        return await self._connections.read(work)

    async def outbox_last(self) -> int:
        async def work(connection: asyncpg.Connection) -> int:
            given, offered = await connection.fetchrow(SQL["outbox_last"])
            last: int = given + offered
            return last

        return await self._connections.read(work)

    async def page(self, shelf: str, after: After) -> Page:
        page = await _read_page(self._connections, shelf, tuple(after) or FIRST[shelf])
        if shelf == "requests":
            return Page([with_wish(row, lambda id: id // SHARDS_MAX) for row in page.rows], page.after)
        return page

    async def put(self, shelf: str, rows: Sequence[tuple[Any, ...]], was: Mark, now: Mark) -> None:
        async def work(connection: asyncpg.Connection) -> None:
            held = await connection.fetchval(SQL["hold_mark"])
            if held is None or _unpack_mark(held) != was:
                raise StoreConflict("DUPLICATE", f"{self.place}: another move has begun to write there")
            await connection.execute(SQL["pass_seal"], was.move)
            await self._put(connection, shelf, rows)
            await connection.execute(SQL["write_mark"], pack(now))

        try:
            await self._connections.write(work)
        except asyncpg.IntegrityConstraintViolationError as problem:
            raise StorePlaceError(
                self.place, f"the rows do not fit: {problem}", "run `treadle fsck` on the store they come from"
            ) from problem

    async def _put(self, connection: asyncpg.Connection, shelf: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        given: Sequence[tuple[Any, ...]] = rows
        if shelf in SHARDED:
            given = [self._placed(shelf, row, shard_of(row[0], self._shards)) for row in rows]
        await connection.execute(SQL[f"in_{shelf}"], *columns(given, len(given[0])))
        await write_derived(connection, shelf, rows)

    @staticmethod
    def _placed(shelf: str, row: tuple[Any, ...], shard: int) -> tuple[Any, ...]:
        """A row with the shard of its run; numbers of the outbox contain the shard, too."""
        if shelf == "outbox":
            row = (*row[:NUMBER], row[NUMBER] * SHARDS_MAX + shard, *row[NUMBER + 1 :])
        elif shelf == "requests":
            row = with_wish(row, lambda number: number * SHARDS_MAX + shard)
        return (shard, *row)

    async def finish(self) -> None:
        async def work(connection: asyncpg.Connection) -> None:
            mark = await read_mark(connection)
            if mark is not None and mark.outbox_last:
                await connection.execute(SQL["move_outbox_last"], mark.outbox_last)
            await connection.execute(SQL["move_entry_ids"])
            await _unseal(connection)
            await connection.execute(SQL["drop_mark"])
            # The tables have no statistics yet: without ANALYZE every plan would begin with a wrong guess.
            await connection.execute(f"ANALYZE {', '.join(TABLES)}")

        await self._connections.write(work)


async def read_mark(connection: asyncpg.Connection) -> Mark | None:
    """The mark of a database; None if it takes part in no move."""
    body = await connection.fetchval(SQL["read_mark"])
    return _unpack_mark(body) if body is not None else None


async def check_whole(connections: Connections) -> None:
    """Refuses a database that is being moved, was moved, or is not complete."""
    mark = await connections.read(read_mark)
    if mark is not None:
        raise refusal(connections.place, mark)


async def _check_ours(dsn: str) -> None:
    connections = await Connections.open(dsn, 1)
    try:
        if not await connections.read(lambda connection: connection.fetchval(SQL["is_ours"])):
            raise StorePlaceError(connections.place, "there is no store in it", "look at its name")
    finally:
        await connections.close()


async def _holders(connection: asyncpg.Connection) -> str:
    """The nodes that own shards; empty if none does."""
    rows = await connection.fetch(SQL["holders"])
    return ", ".join(f"node {name}" + (f" ({shards} shards)" if shards else "") for name, shards in rows)


async def _unseal(connection: asyncpg.Connection) -> None:
    for (table,) in await connection.fetch(SQL["sealed_tables"]):
        await connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {SEAL}")


async def _page(connection: asyncpg.Connection, name: str, place: After, *more: Any) -> Page:
    rows = [tuple(row) for row in await connection.fetch(SQL[name], *place, ROWS_MAX, BYTES_MAX, *more)]
    return Page([row[len(place) :] for row in rows], rows[-1][: len(place)] if rows else place)


async def _outbox_page(connection: asyncpg.Connection, after: After) -> Page:
    """Rows of the outbox, then queue work."""
    is_work, *place = after
    if not is_work:
        page = await _page(connection, "out_outbox", tuple(place))
        if page.rows:
            return Page(page.rows, (False, *page.after))
        place = ["", -1]
    given, _ = await connection.fetchrow(SQL["outbox_last"])
    page = await _page(connection, "out_work", tuple(place), given)
    return Page(
        [(run, number, as_task(run, effect), None) for run, number, effect, _ in page.rows], (True, *page.after)
    )


async def seals(connections: Connections) -> Seals:
    """Checks every sealed value."""
    judge = Judge(connections.place)
    for shelf in SHELVES:
        place = FIRST[shelf]
        while rows := (page := await _read_page(connections, shelf, place)).rows:
            judge.look(shelf, rows)
            place = page.after
    return judge.verdict()


async def _read_page(connections: Connections, shelf: str, place: After) -> Page:
    """Rows as they are kept."""
    if shelf == "outbox":
        return await connections.read(lambda connection: _outbox_page(connection, place))
    return await connections.read(lambda connection: _page(connection, f"out_{shelf}", place))
