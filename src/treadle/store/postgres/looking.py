"""What a server says of itself, on a connection that was just opened.

Owns the question and what is kept of its answer with a connection. Promises that a server that does not answer such
questions is no worse for it. Must not judge: `witness` compares, `connect` refuses.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import asyncpg

from treadle.store.places import Host
from treadle.store.postgres.hosts import Way
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.witness import Sight

SURVEY_S = 1.0
"""A server that is there answers within milliseconds; one that is not must not hold up every command line."""
UNTOLD = (asyncpg.SyntaxOrAccessError, asyncpg.FeatureNotSupportedError, asyncpg.ObjectNotInPrerequisiteStateError)
"""This user may not ask, or the server is of a kind that does not know: then only the other proofs hold."""


class Line(asyncpg.Connection):  # type: ignore[misc]  # asyncpg comes without types
    """A connection that knows which timeline its server is on."""

    __slots__ = ("timeline",)

    timeline: int | None

    def is_outdated(self, newest: int | None) -> bool:
        """Its server was the primary until another was promoted."""
        return self.timeline is not None and newest is not None and self.timeline < newest


class Server(NamedTuple):
    """One host of an address, as `survey` found it."""

    host: Host
    problem: Exception | None = None
    is_primary: bool = False
    sight: Sight | None = None


async def look(connection: asyncpg.Connection) -> Sight:
    """The server behind a connection."""
    try:
        system, timeline, position = await connection.fetchrow(SQL["look"])
    except UNTOLD:
        system = timeline = position = None
    try:
        epochs = await connection.fetchval(SQL["add_epochs"])
    except UNTOLD:
        epochs = None
    return Sight(system, timeline, position, epochs)


async def survey(way: Way) -> list[Server]:
    """Every host of an address, each on a connection of its own."""
    return list(await asyncio.gather(*(_visit(way, host) for host in way.hosts)))


async def _visit(way: Way, host: Host) -> Server:
    try:
        asked = {**way.settings(host), "timeout": SURVEY_S, "command_timeout": SURVEY_S}
        connection = await asyncpg.connect(**asked, target_session_attrs="any")
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as problem:
        return Server(host, problem)
    try:
        is_primary = not await connection.fetchval("SELECT pg_is_in_recovery()")
        return Server(host, None, is_primary, await look(connection))
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as problem:
        return Server(host, problem)
    finally:
        connection.terminate()
