"""Transactions on connections: one per write, retried where that is harmless.

Owns the tries and their outcome. Promises that a write has happened when it returns, that it has had no effect when it
raises, and that an unknown outcome is reported as such (`StoreUnavailable.outcome_unknown`). Must not know what a
transaction does.

Invariants
    1. A transaction is tried again only after 40001 or 40P01, which say that nothing has happened.
    2. Trouble before COMMIT was sent: nothing has happened. From there to its answer: unknown, never tried again here.
       A statement that is its own transaction is its own COMMIT.
    3. A process that stands still in a transaction loses it after STILL_MS: the lease it has locked can be taken over.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeVar

import asyncpg

from treadle.errors import StoreUnavailable
from treadle.store.postgres.connect import tidy
from treadle.store.postgres.faults import LOST, RETRIED, is_verdict, misplaced, unavailable
from treadle.store.postgres.hosts import Way, way_to
from treadle.store.postgres.pool import Pool
from treadle.store.postgres.server_facts import ServerConnection, examine

TRIES = 10
"""Tries, with pauses that double from PAUSE_S: after about five seconds of conflicts the caller gets an error."""
PAUSE_S = 0.005
STILL_MS = 10_000
LOCK_MS = 15_000
"""Longer than STILL_MS, so that a transaction that waits for the lock of a stopped process gets it."""
BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED;"
    f"SET LOCAL idle_in_transaction_session_timeout = {STILL_MS}; SET LOCAL lock_timeout = {LOCK_MS}"
)

T = TypeVar("T")
Work = Callable[[asyncpg.Connection], Awaitable[T]]


class Passing(Exception):
    """A conflict that was over before its reason could be found."""


_RETRIED = (*RETRIED, Passing)


class TransactionMisfit(Exception):
    """A transaction found that the database is not as it expected. `explain` finds the reason once its writes are
    undone."""

    def __init__(self, explain: Callable[[asyncpg.Connection], Awaitable[BaseException]]) -> None:
        super().__init__("does not fit")
        self.explain = explain


class Connections:
    """A database and its pool of connections. Made by `open`."""

    def __init__(self, pool: Pool, way: Way) -> None:
        self._pool = pool
        self._way = way
        self.place = way.place

    @classmethod
    async def open(cls, dsn: str, connections_max: int) -> Connections:
        """Raises `StoreUnavailable` or `StorePlaceError`."""
        pool, way = Pool(dsn, connections_max), way_to(dsn)
        try:
            pool.give_back(await pool.take())
        except Exception as problem:
            made = misplaced(problem, way.place)
            if made is problem:
                raise
            raise made from problem
        return cls(pool, way)

    async def close(self) -> None:
        """Waits for transactions under way, then closes the pool."""
        await self._pool.close()

    async def read(self, work: Work[T]) -> T:
        """Runs queries. Each statement sees what is committed when it begins."""
        return await self._again(work, self._read)

    async def write(self, work: Work[T]) -> T:
        """One transaction. `work` may run more than once."""
        return await self._again(work, self._write)

    async def write_alone(self, work: Work[T]) -> T:
        """One statement that is its own transaction. An error that the server reports is certain; if the connection is
        lost, the outcome is unknown from the first byte on."""
        return await self._again(work, self._write_alone)

    async def _again(self, work: Work[T], once: Callable[[asyncpg.Connection, Work[T]], Awaitable[T]]) -> T:
        for tries in range(TRIES):
            connection = await self._take(hurry=once != self._read)
            try:
                result = await once(connection, work)
            except _RETRIED as problem:
                refused = problem
                await self._mend(connection)
            except Exception:
                await self._mend(connection)
                raise
            except BaseException:  # interrupted, at any point
                self._pool.throw_away(connection)
                raise
            else:
                self._pool.give_back(connection)
                return result
            await asyncio.sleep(random.uniform(0, PAUSE_S * 2**tries))
        raise StoreUnavailable(f"{self.place}: refused {TRIES} times: {refused}") from refused

    async def _read(self, connection: asyncpg.Connection, work: Work[T]) -> T:
        try:
            return await work(connection)
        except _RETRIED:
            raise
        except Exception as problem:
            self._tell(problem)

    async def _write_alone(self, connection: asyncpg.Connection, work: Work[T]) -> T:
        asked = False
        try:
            try:
                return await work(connection)
            except TransactionMisfit as misfit:
                asked = True
                raise await misfit.explain(connection) from None
        except _RETRIED:
            raise
        except Exception as problem:
            self._tell(problem, outcome_unknown=not asked and not is_verdict(problem))

    async def _write(self, connection: asyncpg.Connection, work: Work[T]) -> T:
        committing = False
        try:
            try:
                await connection.execute(BEGIN)
                result = await work(connection)
                committing = True
                await connection.execute("COMMIT")
            except TransactionMisfit as misfit:
                await tidy(connection)
                raise await misfit.explain(connection) from None
            return result
        except _RETRIED:
            raise
        except Exception as problem:
            self._tell(problem, outcome_unknown=committing)

    async def _take(self, hurry: bool) -> ServerConnection:
        """Takes a connection. `hurry`: before all others, for writes, which are few and for which others wait."""
        try:
            connection = await self._pool.take(hurry)
        except Exception as problem:
            self._tell(problem)
        if not connection.may_have_changed:
            return connection
        try:
            await examine(connection, self._way, None)
        except BaseException as problem:
            self._pool.throw_away(connection)
            if not isinstance(problem, Exception):
                raise
            self._tell(problem)
        return connection

    def _tell(self, problem: BaseException, outcome_unknown: bool = False) -> NoReturn:
        made = unavailable(problem, self.place, outcome_unknown=outcome_unknown)
        if made is problem:
            raise problem
        raise made from problem

    async def _mend(self, connection: ServerConnection) -> None:
        """Gives a connection back after a reported error, or closes it if it cannot be reset."""
        connection.asked = 0.0
        try:
            await tidy(connection)
        except BaseException as problem:
            self._pool.throw_away(connection)
            if not isinstance(problem, LOST):
                raise
        else:
            self._pool.give_back(connection)
