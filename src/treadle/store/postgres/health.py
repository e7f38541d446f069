"""How a database is, for a doctor: what the server says of itself, and who is at work.

Owns the questions. Promises to change nothing: a database without our tables stays without them. Must not judge; what
is good or bad is said where it is shown.
"""

from __future__ import annotations

import time

import asyncpg
from msgspec import Struct

from treadle.store import statements
from treadle.store.places import shown
from treadle.store.postgres.connect import migrations, prepare, reach
from treadle.store.postgres.faults import misplaced, said
from treadle.store.postgres.hosts import way_to
from treadle.store.postgres.looking import Server, ServerConnection, survey
from treadle.store.postgres.transfer import TABLES, read_mark
from treadle.store.transfer import Mark

SQL = statements.read("treadle.store.postgres", "health.sql")
OURS = (*TABLES, "leases", "nodes", "calendar")
DEAD_MIN = 10_000
"""Dead rows that are worth a word; fewer are cleared away in passing."""


class NodeHealth(Struct, frozen=True):
    """One that is alive."""

    name: str
    coordinates: bool
    behind_ms: int


class StoreHealth(Struct, frozen=True, kw_only=True):
    """What is kept there, and who looks after it."""

    shards: int
    days_behind: int
    """How long ago the day of its history began anew, in days."""
    partitions: int
    nodes: list[NodeHealth]
    leases: int
    """Shards that belong to somebody."""
    orphaned: int
    """Of these, the ones whose node does not say any more that it is alive."""
    open_runs: int
    requests: int
    oldest_request_ms: int | None
    timers_due: int
    oldest_timer_ms: int | None
    dead_letters: int
    dead_rows: dict[str, tuple[int, int]]
    """Table → (dead, live), where there are more dead than live ones."""
    not_vacuumed: list[str]
    bytes: int
    mark: Mark | None


class ServerHealth(Struct, frozen=True, kw_only=True):
    """One of several servers of an address."""

    host: str
    role: str
    """primary, standby; "" if it cannot be reached."""
    timeline: int | None
    problem: str


class DatabaseHealth(Struct, frozen=True, kw_only=True):
    """How a server is, and the store in it if there is one."""

    place: str
    servers: list[ServerHealth]
    """Where the address names several."""
    settings: dict[str, str]
    is_pooled: bool
    """A pooler is in between."""
    standbys: int
    """That follow this server at the moment."""
    clock_ms: int
    """How far the server's clock is ahead of ours."""
    round_trip_ms: float
    connections: int
    connections_ours: int
    oldest_transaction_ms: int | None
    oldest_transaction: str
    """Whose it is."""
    prepared: int
    schema_version: int | None
    """Of our tables, if there are any."""
    schema_newest: int
    """The one this Treadle knows."""
    namesakes: list[str]
    """Tables of somebody else that have names of ours, where there are none of ours yet."""
    lacking: list[str]
    """Rights this user does not have and an engine needs: CREATE, SELECT, INSERT, UPDATE, DELETE."""
    store: StoreHealth | None
    """Only where the two are the same, and may be read."""


async def examine(dsn: str) -> DatabaseHealth:
    """Raises `StorePlaceError` or `StoreUnavailable`."""
    place = shown(dsn)
    try:
        connection = await reach(dsn, is_brief=True)
    except Exception as problem:
        made = misplaced(problem, place)
        raise made from (None if made is problem else problem)
    try:
        await prepare(connection)
        way = way_to(dsn)
        servers = [_server(one) for one in await survey(way)] if len(way.hosts) > 1 else []
        return await _examine(connection, place, servers)
    finally:
        await connection.close()


def _server(found: Server) -> ServerHealth:
    role = "" if found.sight is None else "primary" if found.is_primary else "standby"
    timeline = found.sight.timeline if found.sight is not None else None
    problem = said(found.problem) if found.problem is not None else ""
    return ServerHealth(host=str(found.host), role=role, timeline=timeline, problem=problem)


async def _examine(connection: ServerConnection, place: str, servers: list[ServerHealth]) -> DatabaseHealth:
    await connection.fetchval(SQL["clock"])  # the first time costs a plan
    began, asked = time.time(), time.perf_counter()
    clock = await connection.fetchval(SQL["clock"])
    round_trip = time.perf_counter() - asked
    oldest = await connection.fetchrow(SQL["oldest_transaction"])
    everybody, ours = await connection.fetchrow(SQL["connections"])
    newest = migrations()[-1][0]
    version = await _version(connection)
    lacking = [need for (need,) in await connection.fetch(SQL["lacking"], list(OURS))] if version else []
    lacking += [] if await connection.fetchval(SQL["may_create"]) else ["CREATE"]
    is_readable = version == newest and "SELECT" not in lacking
    return DatabaseHealth(
        place=place,
        servers=servers,
        settings=dict(await connection.fetch(SQL["settings"])),
        is_pooled=connection.is_pooled,
        standbys=await connection.fetchval(SQL["standbys"]),
        clock_ms=clock - round((began + round_trip / 2) * 1000),
        round_trip_ms=round_trip * 1000,
        connections=everybody,
        connections_ours=ours,
        oldest_transaction_ms=oldest["age"] if oldest else None,
        oldest_transaction=f"pid {oldest['pid']} {oldest['application_name']} ({oldest['state']})" if oldest else "",
        prepared=await connection.fetchval(SQL["prepared"]),
        schema_version=version,
        schema_newest=newest,
        namesakes=[] if version else [name for (name,) in await connection.fetch(SQL["namesakes"], list(OURS))],
        lacking=lacking,
        store=await _store(connection) if is_readable else None,
    )


async def _version(connection: asyncpg.Connection) -> int | None:
    """Of our tables. 0: somebody wanted to make them and could not."""
    if not await connection.fetchval(SQL["is_ours"]):
        return None
    version: int | None = await connection.fetchval(SQL["schema_version"])
    return version


async def _store(connection: asyncpg.Connection) -> StoreHealth:
    shards, days = await connection.fetchrow(SQL["state"])
    leases, orphaned = await connection.fetchrow(SQL["leases"])
    open_runs, requests, asked, letters = await connection.fetchrow(SQL["waiting"])
    due, oldest = await connection.fetchrow(SQL["timers_due"])
    now = await connection.fetchval(SQL["clock"])
    return StoreHealth(
        shards=shards,
        days_behind=days,
        partitions=await connection.fetchval(SQL["partitions"]),
        nodes=[NodeHealth(*row) for row in await connection.fetch(SQL["nodes"])],
        leases=leases,
        orphaned=orphaned,
        open_runs=open_runs,
        requests=requests,
        oldest_request_ms=now - asked if asked is not None else None,
        timers_due=due,
        oldest_timer_ms=now - oldest if oldest is not None else None,
        dead_letters=letters,
        dead_rows={table: (dead, live) for table, dead, live in await connection.fetch(SQL["dead_rows"], DEAD_MIN)},
        not_vacuumed=[table for (table,) in await connection.fetch(SQL["not_vacuumed"])],
        bytes=await connection.fetchval(SQL["bytes"]),
        mark=await read_mark(connection),
    )
