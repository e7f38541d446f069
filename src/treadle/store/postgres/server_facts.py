"""The facts about a server, asked on a connection that was just opened.

Owns the queries and the facts that are kept with a connection. Promises that a server that does not answer some of them
can be used nevertheless. Must not judge: `witness` compares.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

import asyncpg

from treadle.store.places import ServerHost
from treadle.store.postgres.hosts import Way
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.witness import Sight

SURVEY_S = 1.0
"""Timeout of a survey: a living server answers within milliseconds; a dead one must not delay every command."""
ASK_AGAIN_S = 1.0
"""Behind a pooler, the server is asked again before a connection is used after this time: two small queries."""
UNTOLD = (asyncpg.SyntaxOrAccessError, asyncpg.FeatureNotSupportedError, asyncpg.ObjectNotInPrerequisiteStateError)
"""Errors of a server that does not answer a query (no right, or another kind of server): other proofs are used then."""


class ServerConnection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg comes without types
    """A connection with the timeline of its server, the time it was asked, and whether there is a pooler in between."""

    __slots__ = ("asked", "is_pooled", "timeline")

    timeline: int | None
    asked: float
    """By `time.monotonic`."""
    is_pooled: bool

    @property
    def may_have_changed(self) -> bool:
        """Behind a pooler the server may have been replaced since it was asked; else a connection ends with it."""
        return self.is_pooled and time.monotonic() - self.asked > ASK_AGAIN_S

    def is_outdated(self, newest: int | None) -> bool:
        """Whether its server is an old primary: another one was promoted since."""
        return self.timeline is not None and newest is not None and self.timeline < newest


class Server(NamedTuple):
    """One host of an address, as `survey` found it."""

    host: ServerHost
    problem: Exception | None = None
    is_primary: bool = False
    sight: Sight | None = None


class Found(NamedTuple):
    """The server that a connection leads to."""

    sight: Sight
    is_primary: bool
    is_pooled: bool
    """Whether there is a pooler in between: the backend process that answers is not the announced one, and each
    transaction may get another."""


async def look(connection: asyncpg.Connection) -> Found:
    """The server behind a connection."""
    try:
        process, is_primary, system, timeline, position = await connection.fetchrow(SQL["look"])
    except UNTOLD:
        process, is_primary = await connection.fetchrow(SQL["who_answers"])
        system = timeline = position = None
    try:
        epochs = await connection.fetchval(SQL["add_epochs"])
    except UNTOLD:
        epochs = None
    return Found(Sight(system, timeline, position, epochs), is_primary, process != connection.get_server_pid())


async def examine(connection: ServerConnection, way: Way, host: ServerHost | None) -> None:
    """Notes the server that a connection leads to. Raises StoreGoneBack if that server lacks commits that were seen
    before, and TargetServerAttributeNotMatched if it only reads: behind a pooler, the facts announced on connecting may
    be old."""
    before, connection.asked = way.witness.seen, time.monotonic()
    found = await look(connection)
    if not found.is_primary:
        raise asyncpg.TargetServerAttributeNotMatched("it only reads")
    if objection := way.witness.objection(found.sight, before):
        raise way.refused(host, objection)
    connection.timeline = found.sight.timeline
    connection.is_pooled = way.is_pooled = found.is_pooled
    way.found(host, found.sight)


async def survey(way: Way) -> list[Server]:
    """Asks every host of an address, each on a connection of its own."""
    return list(await asyncio.gather(*(_visit(way, host) for host in way.hosts)))


async def _visit(way: Way, host: ServerHost) -> Server:
    try:
        quickly = {"timeout": SURVEY_S, "command_timeout": SURVEY_S, "statement_cache_size": 0}
        connection = await asyncpg.connect(**{**way.settings(host), **quickly}, target_session_attrs="any")
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as problem:
        return Server(host, problem)
    try:
        found = await look(connection)
        return Server(host, None, found.is_primary, found.sight)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as problem:
        return Server(host, problem)
    finally:
        connection.terminate()
