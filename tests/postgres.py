"""A PostgreSQL to test against: the one `TREADLE_TEST_POSTGRES` names, else one out of a wheel; and beside it the one
the machine has installed, which is usually older.

Where it comes from is `treadle.testing.world.postgres`'s business. Where none can be had the tests skip and say why.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.postgres_server import Server, of_the_system
from treadle.store.postgres import PostgresStore
from treadle.store.postgres.connect import migrate
from treadle.store.postgres.hosts import way_to
from treadle.testing.world.postgres import run_all as run_all
from treadle.testing.world.postgres import server as found
from treadle.testing.world.store_names import NoPostgres

_numbers = count(1)


def server() -> str:
    """Its address; skips the test where there is none."""
    try:
        return found()
    except NoPostgres as problem:
        pytest.skip(str(problem))


@contextmanager
def new_database(of: str = "") -> Iterator[str]:
    """A database with nothing in it, on that server or on the one for tests."""
    dsn = of or server()
    name = f"treadle_{os.getpid()}_{next(_numbers)}"
    asyncio.run(run_all(dsn, f"CREATE DATABASE {name}"))
    try:
        yield urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))
    finally:
        asyncio.run(run_all(dsn, f"DROP DATABASE {name} WITH (FORCE)"))


@contextmanager
def system_server() -> Iterator[str]:
    """The PostgreSQL this machine has installed, started for a moment; skips where there is none."""
    binaries = of_the_system()
    if binaries is None:
        pytest.skip("this machine has no PostgreSQL of its own")
    started = Server(binaries)
    try:
        yield started.address()
    finally:
        started.close()


class Database:
    """One database with our tables, emptied between its users: much cheaper than a new one for each."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        asyncio.run(migrate(dsn, 1))  # one shard, like the other stores: the contract names it

    async def open(self, payload_max: int) -> PostgresStore:
        """A store with nothing in it."""
        await run_all(
            self.dsn,
            "TRUNCATE runs, run_keys, batch_items, tags, history, outbox, timers, gates, requests, documents, blobs, "
            "leases, nodes, work, meters, log_entries, log_heads, notes, forgets, entities, addresses, moves, "
            "positions RESTART IDENTITY",
        )
        way_to(self.dsn).witness.forget()
        return await PostgresStore.open(self.dsn, payload_max=payload_max, connections_max=4)
