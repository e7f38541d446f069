"""The health of a database, for `treadle doctor`: the server's settings and state, and the nodes at work.

Owns the queries. Promises to change nothing: a database without our tables stays without them. Must not judge: the
command line decides what is good or bad.
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
from treadle.store.postgres.server_facts import Server, ServerConnection, survey
from treadle.store.postgres.transfer import TABLES, read_mark
from treadle.store.transfer import Mark

SQL = statements.read("treadle.store.postgres", "health.sql")
OURS = (*TABLES, "leases", "nodes", "calendar")
DEAD_MIN = 10_000
"""Dead rows from which a table is reported; fewer are vacuumed in passing."""


class NodeHealth(Struct, frozen=True):
    """A node that is alive."""

    name: str
    coordinates: bool
    behind_ms: int


class StoreHealth(Struct, frozen=True, kw_only=True):
    """The store's rows, and the nodes that work on it."""

    shards: int
    days_behind: int
    """Days since the newest partition of history was begun."""
    partitions: int
    nodes: list[NodeHealth]
    leases: int
    """Number of shards with an owner."""
    orphaned: int
    """Number of shards whose owner is no longer alive."""
    open_runs: int
    requests: int
    oldest_request_ms: int | None
    timers_due: int
    oldest_timer_ms: int | None
    dead_letters: int
    dead_rows: dict[str, tuple[int, int]]
    """Table → (dead, live) rows, for tables with more dead than live ones."""
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
    """The state of a server, and of the store in it if there is one."""

    place: str
    servers: list[ServerHealth]
    """All servers, if the address names several."""
    settings: dict[str, str]
    is_pooled: bool
    """Whether there is a pooler in between."""
    standbys: int
    """Number of standbys that follow this server now."""
    clock_ms: int
    """How far the server's clock is ahead of ours."""
    round_trip_ms: float
    connections: int
    connections_ours: int
    oldest_transaction_ms: int | None
    oldest_transaction: str
    """The process id, program and state of the oldest transaction's connection."""
    prepared: int
    schema_version: int | None
    """Version of our tables; None if there are none."""
    schema_newest: int
    """The newest version that this Treadle knows."""
    namesakes: list[str]
    """Other tables with the names of ours, if ours do not exist yet."""
    lacking: list[str]
    """Rights that an engine needs and this user lacks: CREATE, SELECT, INSERT, UPDATE, DELETE."""
    store: StoreHealth | None
    """The store; only if its version is the newest and it may be read."""


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
    await connection.fetchval(SQL["clock"])  # the first query includes planning
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
    """The version of our tables. 0: a process began to create them and could not."""
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
