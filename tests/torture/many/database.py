"""The torturer's hands on the database itself: locks, time-outs, floods, ended and frozen backends.

Owns the connections and processes it does that with, on the server of the torture and directly, not through a line.
Promises that every fault but `terminate`, which is over at once, ends by itself or with `heal`. Must not choose.

    lock       somebody holds one of the tables, all of it, and lets go
    timeout    the server cuts off every statement that takes longer than a few milliseconds
    flood      somebody has taken every connection that was free
    terminate  half of the backends are ended by an administrator (pg_terminate_backend)
    freeze     some backends stand still (SIGSTOP), with whatever they hold
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

import asyncpg

from tests.postgres_server import Server

LOCKED = ("runs", "history", "requests", "leases", "nodes", "work", "outbox", "timers", "documents")
TIMEOUT_MS = (3, 40)
FLOOD_MAX = 250
SAY_S = 5.0
"""A server that crashes or is flooded at the same moment does not answer: then the fault does not happen."""
LOST = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


class Hands:
    """See the module's docstring. Has a thread of its own, so that a lock can be held while others are struck."""

    def __init__(self, server: Callable[[], Server], seed: int) -> None:
        self._server = server
        self._random = random.Random(seed)
        self._frozen: set[int] = set()
        self._held: set[asyncpg.Connection] = set()
        """With a lock, or only to take up room."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def strike(self, fault: str, seconds: float) -> bool:
        """Whether it could be done; what lasts goes on by itself."""
        doing: dict[str, Callable[[asyncpg.Connection, float], Awaitable[None]]] = {
            "lock": self._lock,
            "timeout": self._timeout,
            "flood": self._flood,
            "terminate": self._terminate,
            "freeze": self._freeze,
        }
        done = asyncio.run_coroutine_threadsafe(self._begin(doing[fault], seconds), self._loop)
        return done.result()

    def heal(self) -> None:
        """Nothing of it lasts. The server is up."""
        self.wake()
        asyncio.run_coroutine_threadsafe(self._release(), self._loop).result()
        asyncio.run_coroutine_threadsafe(self._reset_timeout(), self._loop).result()

    def close(self) -> None:
        self.wake()
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _begin(self, doing: Callable[[asyncpg.Connection, float], Awaitable[None]], seconds: float) -> bool:
        try:
            connection = await asyncpg.connect(self._server().address(), timeout=SAY_S, command_timeout=SAY_S)
        except LOST:
            return False
        try:
            await doing(connection, seconds)
        except LOST:
            return False
        finally:
            if connection not in self._held:
                connection.terminate()
        return True

    async def _lock(self, connection: asyncpg.Connection, seconds: float) -> None:
        await connection.execute("SET lock_timeout = '3s'; BEGIN")
        await connection.execute(f"LOCK TABLE {self._random.choice(LOCKED)} IN ACCESS EXCLUSIVE MODE")
        self._hold(connection, seconds)

    def _hold(self, connection: asyncpg.Connection, seconds: float) -> None:
        self._held.add(connection)
        self._loop.call_later(seconds, self._let_go, connection)

    def _let_go(self, connection: asyncpg.Connection) -> None:
        self._held.discard(connection)
        connection.terminate()

    async def _timeout(self, connection: asyncpg.Connection, seconds: float) -> None:
        await connection.execute(f"ALTER SYSTEM SET statement_timeout = {self._random.randint(*TIMEOUT_MS)}")
        await connection.execute("SELECT pg_reload_conf()")
        self._loop.call_later(seconds, lambda: self._loop.create_task(self._reset_timeout()))

    async def _flood(self, connection: asyncpg.Connection, seconds: float) -> None:
        self._hold(connection, seconds)
        opened = [asyncpg.connect(self._server().address(), timeout=SAY_S) for _ in range(FLOOD_MAX)]
        for one in await asyncio.gather(*opened, return_exceptions=True):
            if not isinstance(one, BaseException):
                self._hold(one, seconds)
        with suppress(asyncpg.TooManyConnectionsError):  # a busy machine has let some of them wait for too long
            for _ in range(FLOOD_MAX):
                self._hold(await asyncpg.connect(self._server().address(), timeout=SAY_S), seconds)

    async def _terminate(self, connection: asyncpg.Connection, _seconds: float) -> None:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND backend_type = 'client backend' AND random() < 0.5"
        )

    async def _freeze(self, connection: asyncpg.Connection, seconds: float) -> None:
        rows = await connection.fetch(
            "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        for (pid,) in rows:
            if self._random.random() < 0.3:
                self._frozen.add(pid)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
        self._loop.call_later(seconds, self.wake)

    def wake(self) -> None:
        """Nobody stands still."""
        while self._frozen:
            with suppress(ProcessLookupError):
                os.kill(self._frozen.pop(), signal.SIGCONT)

    async def _reset_timeout(self) -> None:
        """Until it is: a server that comes up with the time-out would keep it."""
        while True:
            with suppress(*LOST):
                connection = await asyncpg.connect(self._server().address(), timeout=SAY_S)
                try:
                    await connection.execute("SET statement_timeout = 0")
                    await connection.execute("ALTER SYSTEM RESET statement_timeout")
                    await connection.execute("SELECT pg_reload_conf()")
                    return
                finally:
                    connection.terminate()
            await asyncio.sleep(0.2)

    async def _release(self) -> None:
        for connection in tuple(self._held):
            self._let_go(connection)

    async def _end(self) -> None:
        await self._release()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
