"""Connections to a database, and migration of its schema.

Owns the settings of a connection and the migrations. Refuses a database that a newer Treadle has written, a database
with other tables of the same names, and a server that acknowledges commits it may lose. Must not know verbs.

Failure cases
    A migration that is interrupted leaves the version before it: each runs in one transaction with its number. Two
    nodes that start at once: the second waits for the row the first holds, and finds the work done.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from importlib.resources import files
from typing import Any

import asyncpg

from treadle.errors import StoreGoneBack, StorePlaceError
from treadle.store.places import ServerHost, shown
from treadle.store.postgres.faults import UNPREPARED, WRONG_OPTIONS, misplaced, said
from treadle.store.postgres.hosts import NEXT, Way, way_to
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.server_facts import ServerConnection, examine, survey

ANSWER_S = 30.0
"""Statements take milliseconds. Half a minute of silence means a dead connection: the caller gets an error."""
ALMOST_S = 1.0
"""A living server takes milliseconds; a process that is interrupted does not wait longer for a dead one."""
MAKING_TRIES = 10
POOLER_REMEDY = (
    "set it for the user or the database (ALTER ROLE … SET search_path = …), let the pooler pass it on (PgBouncer from"
    " 1.20: track_extra_parameters), or connect directly"
)
LOCK_MS = 5_000
"""How long a migration waits for a table. All others wait behind it, so it gives up soon and says so."""


async def prepare(connection: ServerConnection) -> None:
    """Prepares a new connection. PostgreSQL cannot keep NUL in a text, users may write it: it is kept as two other
    characters. asyncpg does not look into arrays: the code that passes one calls `without_nul` (`columns.columns`,
    `columns.texts`). A pooler's connections belong to others, too: their plans are left alone."""
    if not connection.is_pooled:
        await connection.execute(SQL["advise_planner"])
    await connection.set_type_codec("text", schema="pg_catalog", encoder=without_nul, decoder=with_nul, format="text")


def without_nul(text: str) -> str:
    """A text as PostgreSQL can keep it."""
    if "\0" in text or "\1" in text:
        return text.replace("\1", "\1\1").replace("\0", "\1\2")
    return text


def with_nul(text: str) -> str:
    """The text as its author wrote it."""
    if "\1" in text:
        return re.sub("\1([\1\2])", lambda match: "\1" if match[1] == "\1" else "\0", text)
    return text


async def tidy(connection: asyncpg.Connection) -> None:
    """Resets a connection between two users. There are no session settings to reset: a pooler may be in between."""
    if connection.is_in_transaction():
        await connection.execute("ROLLBACK")


def settings() -> dict[str, Any]:
    """Settings of every connection of the store."""
    return {
        "command_timeout": ANSWER_S,
        "target_session_attrs": "read-write",
        "server_settings": {"application_name": "treadle"},
    }


async def reach(dsn: str, *, is_brief: bool = False, **other: Any) -> ServerConnection:
    """A new connection to the primary among the hosts of the address, with settings beside the usual ones. `is_brief`:
    for a few statements, so that it does not matter whether they can be prepared. Raises the exception of
    `asyncpg.connect` for the last host, StorePlaceError for a wrong address, and StoreGoneBack for a server that lacks
    commits this process has already seen.

    A caller that is cancelled waits until the connection is made, or for ALMOST_S: if asyncpg is cancelled while it
    asks a server for TLS, it leaves a future whose error is never retrieved, and Python prints that to the user."""
    opening = asyncio.get_running_loop().create_task(_first_that_fits(way_to(dsn), {**settings(), **other}, is_brief))
    try:
        return await asyncio.shield(opening)
    except WRONG_OPTIONS as problem:
        remedy = "look at the options behind the ? of the address"
        raise StorePlaceError(shown(dsn), str(problem), remedy) from problem
    except asyncpg.ProtocolViolationError as problem:
        if "startup parameter" in str(problem):
            raise StorePlaceError(shown(dsn), str(problem), POOLER_REMEDY) from problem
        raise
    except asyncio.CancelledError:
        try:
            await asyncio.wait({opening}, timeout=ALMOST_S)
        finally:
            opening.add_done_callback(_drop)
            opening.cancel()
        raise


async def _first_that_fits(way: Way, chosen: dict[str, Any], is_brief: bool) -> ServerConnection:
    problems: dict[str, Exception] = {}
    if way.witness.seen is None and len(way.hosts) > 1:
        way.learn([(one.is_primary, one.sight) for one in await survey(way) if one.sight is not None])
    for host in way.in_order():
        try:
            return await _connect(way, host, chosen, is_brief)
        except (*NEXT, StoreGoneBack) as problem:
            problems[str(host)] = problem
    raise _together(problems)


async def _connect(way: Way, host: ServerHost | None, chosen: dict[str, Any], is_brief: bool) -> ServerConnection:
    """A connection to this host. The first connection shows whether there is a pooler in between; if it was made for
    the other case, it is made again."""
    while True:
        expected = way.is_pooled
        connection: ServerConnection = await asyncpg.connect(
            **{**chosen, **way.settings(host)}, connection_class=ServerConnection
        )
        try:
            await examine(connection, way, host)
            await _check_schema(connection, way)
        except UNPREPARED:
            connection.terminate()
            if expected:
                raise
            way.is_pooled = True
        except BaseException:
            connection.terminate()
            raise
        else:
            if connection.is_pooled == (expected is not False) or (is_brief and not connection.is_pooled):
                return connection
            connection.terminate()


async def _check_schema(connection: ServerConnection, way: Way) -> None:
    """Refuses a connection whose pooler dropped the `search_path` of the address: tables would be in another schema."""
    if way.schema is not None and connection.is_pooled:
        stands = await connection.fetchval("SHOW search_path")
        if stands.replace('"', "") != way.schema.replace('"', ""):
            raise StorePlaceError(
                way.place, f"the pooler in between does not pass on search_path={way.schema}", POOLER_REMEDY
            )


def _together(problems: dict[str, Exception]) -> Exception:
    """The error if no host could be used, with the reason of each."""
    *_, last = problems.values()
    gone_back = next((one for one in problems.values() if isinstance(one, StoreGoneBack)), None)
    if gone_back is not None:
        return gone_back
    if len(problems) == 1 or all(isinstance(one, asyncpg.TargetServerAttributeNotMatched) for one in problems.values()):
        return last
    return ConnectionError("; ".join(f"{host}: {said(problem)}" for host, problem in problems.items()))


def _drop(opening: asyncio.Task[ServerConnection]) -> None:
    """Closes a connection that was made after its caller had gone; consumes its exception."""
    if not opening.cancelled() and opening.exception() is None:
        with suppress(asyncpg.InterfaceError, OSError):
            opening.result().terminate()


def migrations() -> list[tuple[int, str]]:
    """(version, statements), oldest first."""
    found = []
    for file in files(__package__).joinpath("migrations").iterdir():
        match = re.fullmatch(r"(\d{4})_\w+\.sql", file.name)
        if match:
            found.append((int(match[1]), file.read_text(encoding="utf-8")))
    return sorted(found)


async def migrate(dsn: str, shards: int, *, make: bool = True) -> int:
    """Brings the database to the version this Treadle knows, or refuses it. Returns the number of its shards. `shards`
    is for a new database. Without `make`, a database of another version is refused: a process that only looks must
    neither create tables nor change them."""
    place = shown(dsn)
    try:
        connection = await reach(dsn, is_brief=True)
        try:
            await _check_durability(connection, place)
            stands = await _version(connection)
            if stands != migrations()[-1][0]:
                if not make:
                    raise _not_here(place, stands)
                await _make_state(connection, shards)
                for version, statements in migrations():
                    async with connection.transaction(isolation="read_committed"):
                        await _step(connection, place, version, statements)
            found: int = (await connection.fetchrow(SQL["read_state"]))["shards"]
            return found
        finally:
            connection.terminate() if connection.is_closed() else await connection.close()
    except Exception as problem:
        made = misplaced(problem, place)
        if made is problem:
            raise
        raise made from problem


async def _check_durability(connection: asyncpg.Connection, place: str) -> None:
    if await connection.fetchval("SHOW synchronous_commit") == "off":
        raise StorePlaceError(
            place, "synchronous_commit is off: what was acknowledged may be lost", "set it to on for this database"
        )


async def _version(connection: asyncpg.Connection) -> int | None:
    """The version of the tables; None if there are none. It is usually the newest: reading it must need neither a lock
    nor the right to create tables."""
    try:
        stands: int | None = await connection.fetchval(SQL["read_version"])
    except asyncpg.UndefinedTableError:
        return None
    return stands


def _not_here(place: str, stands: int | None) -> StorePlaceError:
    """The error for a database that cannot be read without `make`."""
    newest = migrations()[-1][0]
    if not stands:  # 0: a process was interrupted at the first step
        return StorePlaceError(place, "there is no store here", "start an engine or deploy first")
    if stands > newest:
        return _newer(place, stands)
    return StorePlaceError(
        place,
        f"its schema has version {stands}, this Treadle needs {newest}",
        "an engine of this Treadle brings it up to date when it starts, or `treadle deploy`; nodes of an older one must"
        " have stopped by then",
    )


def _newer(place: str, stands: int) -> StorePlaceError:
    return StorePlaceError(
        place,
        f"its schema has version {stands}, this Treadle knows versions up to {migrations()[-1][0]}",
        "it was written by a newer Treadle: use that one, or restore a backup",
    )


async def _make_state(connection: asyncpg.Connection, shards: int) -> None:
    for left in reversed(range(MAKING_TRIES)):
        try:
            await connection.execute(SQL["make_state"])
            break
        except (asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError):
            # Two nodes at once: IF NOT EXISTS does not see a table that is being created.
            if not left:
                raise
    await connection.execute(SQL["begin_state"], shards)


async def _step(connection: asyncpg.Connection, place: str, version: int, statements: str) -> None:
    stands = await connection.fetchval(SQL["hold_state"])
    if stands > migrations()[-1][0]:
        raise _newer(place, stands)
    if stands < version:
        await connection.execute(f"SET LOCAL lock_timeout = {LOCK_MS}")
        await connection.execute(statements)
        await connection.execute(SQL["advance_state"], version)
