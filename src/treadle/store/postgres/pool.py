"""Connections to one database, kept open between their users.

Owns their number. Promises not to hand out a connection that is known to be lost, is in use, or leads to a primary that
was replaced since, and that waiting callers are served in order: first those in a hurry, then the others. Must not know
what connections are used for.

asyncpg's own pool shields every return in a task of its own, which costs as much as a small statement. Here taking and
giving back are plain calls; a connection whose user was interrupted is not mended but thrown away.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from time import monotonic

import asyncpg

from treadle.store.postgres.connect import prepare, reach
from treadle.store.postgres.hosts import way_to
from treadle.store.postgres.server_facts import ServerConnection

IDLE_S = 300.0
"""A connection that was not used for this long is closed: each is a process of the server. One is always kept."""
CLOSE_S = 5.0

_Turn = asyncio.Future[ServerConnection | None]
"""A connection, or None: there is room for a new one."""


class Pool:
    """At most `most` connections, opened when they are needed."""

    def __init__(self, dsn: str, most: int) -> None:
        self._dsn = dsn
        self._witness = way_to(dsn).witness
        self._most = most
        self._spare: list[tuple[ServerConnection, float]] = []
        """Spare connections, each with the time it was given back. The last one is taken first: the others may be
        closed one day."""
        self._open = 0
        """Number of connections: spare, taken, being opened or closed."""
        self._hurried: deque[_Turn] = deque()
        self._waiting: deque[_Turn] = deque()
        self._ending: set[asyncio.Task[None]] = set()
        self._closing = False
        self._all_back: asyncio.Future[None] | None = None

    async def take(self, hurry: bool = False) -> ServerConnection:
        """Raises what `asyncpg.connect` raises, and InterfaceError once the pool is closed. `hurry`: before all who are
        not: a heartbeat must not wait behind a thousand histories."""
        if self._closing:
            raise asyncpg.InterfaceError("the pool is closed")
        while self._spare:
            connection, _ = self._spare.pop()
            if connection.is_closed():
                self._open -= 1
            elif connection.is_outdated(self._witness.timeline):
                self.throw_away(connection)
            else:
                return connection
        if self._open < self._most:
            self._open += 1
            return await self._connect()
        turn: _Turn = asyncio.get_running_loop().create_future()
        (self._hurried if hurry else self._waiting).append(turn)
        try:
            given = await turn
        except asyncio.CancelledError:
            if (
                turn.done() and not turn.cancelled() and turn.exception() is None
            ):  # it had just been handed a connection
                self._pass_on(turn.result())
            raise
        return given if given is not None and not given.is_closed() else await self._connect()

    def give_back(self, connection: ServerConnection) -> None:
        """Gives a connection back, on which nothing is under way."""
        if not connection.is_closed() and connection.is_outdated(self._witness.timeline):
            self.throw_away(connection)
        else:
            self._pass_on(None if connection.is_closed() else connection)

    def throw_away(self, connection: ServerConnection) -> None:
        """Closes a connection on which something may be under way. asyncpg tells the server to stop it before it
        closes: a statement that waits for a lock would otherwise be executed later, when nobody expects it."""
        ending = asyncio.get_running_loop().create_task(self._end(connection))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _end(self, connection: ServerConnection) -> None:
        await _closed(connection)
        self._pass_on(None)

    async def close(self) -> None:
        """Waits until all connections are given back, then closes them."""
        self._closing = True
        while (turn := self._next()) is not None:
            turn.set_exception(asyncpg.InterfaceError("the pool is closed"))
        if self._open > len(self._spare):
            self._all_back = asyncio.get_running_loop().create_future()
            await self._all_back
        spare, self._spare, self._open = self._spare, [], 0
        for connection, _ in spare:
            await _closed(connection)

    async def _connect(self) -> ServerConnection:
        """Opens a new connection; there is room for it."""
        try:
            connection = await reach(self._dsn)
            try:
                await prepare(connection)
            except BaseException:
                connection.terminate()
                raise
        except BaseException:
            self._pass_on(None)
            raise
        return connection

    def _pass_on(self, connection: ServerConnection | None) -> None:
        """Hands a connection, or the room for one, to the next caller; no other can take it in between."""
        turn = self._next()
        if turn is not None:
            turn.set_result(connection)
        elif connection is not None:
            self._spare.append((connection, monotonic()))
            self._let_go()
        else:
            self._open -= 1
        if self._all_back is not None and not self._all_back.done() and self._open == len(self._spare):
            self._all_back.set_result(None)

    def _let_go(self) -> None:
        connection, since = self._spare[0]
        if len(self._spare) > 1 and monotonic() - since > IDLE_S:
            del self._spare[0]
            self.throw_away(connection)

    def _next(self) -> _Turn | None:
        for line in (self._hurried, self._waiting):
            while line:
                turn = line.popleft()
                if not turn.done():
                    return turn
        return None


async def _closed(connection: ServerConnection) -> None:
    try:
        await connection.close(timeout=CLOSE_S)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError):
        with suppress(asyncpg.InterfaceError, OSError):
            connection.terminate()
