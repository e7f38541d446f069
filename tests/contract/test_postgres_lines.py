"""A database behind a line on which nothing passes any more: who wants to go can go."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from tests.postgres_server import Server, address_of, binaries
from tests.torture.many.proxy import Line
from treadle.store.postgres import PostgresStore, pool

AT_WORK = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"


async def interrupted(server: Server) -> None:
    """A store is closed after a statement of its was interrupted whose connection has become a hole."""
    line = Line(server.port)
    watching = await asyncpg.connect(server.address())
    store = await PostgresStore.open(address_of(await line.open()))
    try:
        asking = asyncio.ensure_future(store._connections.read(lambda it: it.execute("SELECT pg_sleep(600)")))
        while not await watching.fetchval(AT_WORK):
            await asyncio.wait([asking], timeout=0.01)
        line.fail("hole", 0, 0)
        asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled()
        async with asyncio.timeout(10):
            await store.close()
    finally:
        line.heal()
        await line.close()
        await watching.close()


def test_a_store_closes_although_the_line_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "CLOSE_S", 0.2)
    server = Server(binaries())
    try:
        asyncio.run(interrupted(server))
    finally:
        server.close()
