"""Nodes that are alive and their leases, by the database's clock.

Owns the rows of `nodes` and the renewal of leases. Each verb is one statement. Must not decide which node gets a shard.
"""

from __future__ import annotations

import asyncpg
import msgspec

from treadle.store.members import Backlog, Lease, Member, Standing
from treadle.store.postgres.queries import SQL

_nodes = msgspec.json.Decoder(list[Member]).decode
_leases = msgspec.json.Decoder(list[Lease]).decode


async def beat(connection: asyncpg.Connection, node: Member, ttl_ms: int) -> Standing:
    """Renews a node and its leases, and returns the standing afterwards."""
    lacks = msgspec.json.encode(node.lacks).decode()
    given = (node.name, node.coordinates, node.queues, node.behind, lacks, node.process)
    return _standing(await connection.fetchrow(SQL["beat"], node.owner, ttl_ms, *given))


async def standing(connection: asyncpg.Connection) -> Standing:
    """The standing: nodes and leases."""
    return _standing(await connection.fetchrow(SQL["standing"]))


async def leave(connection: asyncpg.Connection, owner: str) -> None:
    """Removes a node; one that is not listed is gone already."""
    await connection.execute(SQL["leave"], owner)


async def bury(connection: asyncpg.Connection, owner: str) -> None:
    """Lets a dead node's leases and claims run out at once."""
    await connection.execute(SQL["bury"], owner)


async def backlog(connection: asyncpg.Connection) -> list[Backlog]:
    """What waits, by shard."""
    return [Backlog(*row) for row in await connection.fetch(SQL["backlog"])]


def _standing(row: asyncpg.Record) -> Standing:
    now, nodes, leases = row
    return Standing(now, _nodes(nodes), _leases(leases))
