"""How a database is reached, and how it gets its schema.

Owns the settings of a connection and the migrations. Refuses a database that a newer Treadle has written, one whose
tables are somebody else's, and a server that acknowledges what it may lose. Must not know verbs.

Failure cases
    A migration that is interrupted leaves the version before it: each runs in one transaction with its number. Two
    nodes that start at once: the second waits for the row the first holds, and finds the work done.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import asyncpg

from treadle.errors import StorePlaceError
from treadle.store.places import shown
from treadle.store.postgres.faults import misplaced
from treadle.store.postgres.queries import SQL

CONNECT_S = 10.0
ANSWER_S = 30.0
"""Statements take milliseconds. Half a minute of silence is a blackholed connection: the caller learns it."""
MAKING_TRIES = 10
LOCK_MS = 5_000
"""Everybody waits behind a migration that waits for a table: rather it gives up and says so."""


async def prepare(connection: asyncpg.Connection) -> None:
    """Once for every connection. PostgreSQL has no NUL in a text, people may: it is kept as two other characters.
    asyncpg does not look into arrays: who passes one calls `without_nul` (`columns.columns`, `columns.texts`)."""
    await connection.execute(SQL["advise_planner"])
    await connection.set_type_codec("text", schema="pg_catalog", encoder=without_nul, decoder=with_nul, format="text")


def without_nul(text: str) -> str:
    """A text as PostgreSQL can keep it."""
    if "\0" in text or "\1" in text:
        return text.replace("\1", "\1\1").replace("\0", "\1\2")
    return text


def with_nul(text: str) -> str:
    """The text as somebody wrote it."""
    if "\1" in text:
        return re.sub("\1([\1\2])", lambda match: "\1" if match[1] == "\1" else "\0", text)
    return text


async def tidy(connection: asyncpg.Connection) -> None:
    """Between two users of a connection. Nothing that matters is set for a session: a pooler may sit in between."""
    if connection.is_in_transaction():
        await connection.execute("ROLLBACK")


def settings() -> dict[str, Any]:
    """For every connection of the store."""
    return {
        "timeout": CONNECT_S,
        "command_timeout": ANSWER_S,
        "target_session_attrs": "read-write",
        "server_settings": {"application_name": "treadle"},
    }


def migrations() -> list[tuple[int, str]]:
    """(version, statements), oldest first."""
    found = []
    for file in files(__package__).joinpath("migrations").iterdir():
        match = re.fullmatch(r"(\d{4})_\w+\.sql", file.name)
        if match:
            found.append((int(match[1]), file.read_text(encoding="utf-8")))
    return sorted(found)


async def migrate(dsn: str, shards: int) -> int:
    """Brings the database to the version this Treadle knows, or refuses it; over how many shards its runs are spread.
    `shards` is for a database that is new."""
    place = shown(dsn)
    try:
        connection = await asyncpg.connect(dsn, **settings())
        try:
            await _check_durability(connection, place)
            if not await _is_up_to_date(connection):
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


async def _is_up_to_date(connection: asyncpg.Connection) -> bool:
    """The usual case, which must need neither a lock nor the right to make tables."""
    try:
        return bool(await connection.fetchval(SQL["read_version"]) == migrations()[-1][0])
    except asyncpg.UndefinedTableError:
        return False


async def _make_state(connection: asyncpg.Connection, shards: int) -> None:
    for left in reversed(range(MAKING_TRIES)):
        try:
            await connection.execute(SQL["make_state"])
            break
        except (asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError):
            # Two nodes at once: IF NOT EXISTS does not see a table that is about to be.
            if not left:
                raise
    await connection.execute(SQL["begin_state"], shards)


async def _step(connection: asyncpg.Connection, place: str, version: int, statements: str) -> None:
    stands = await connection.fetchval(SQL["hold_state"])
    newest = migrations()[-1][0]
    if stands > newest:
        raise StorePlaceError(
            place,
            f"its schema has version {stands}, this Treadle knows versions up to {newest}",
            "it was written by a newer Treadle: use that one, or restore a backup",
        )
    if stands < version:
        await connection.execute(f"SET LOCAL lock_timeout = {LOCK_MS}")
        await connection.execute(statements)
        await connection.execute(SQL["advance_state"], version)
