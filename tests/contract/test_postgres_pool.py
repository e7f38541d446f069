"""Connections kept between their users: never lost ones, never two users, in order."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from tests.postgres import Database, run_all
from tests.runtime.executing import turns
from treadle.store.postgres import pool as pools
from treadle.store.postgres.pool import Pool


def test_a_connection_is_handed_on(database: Database, runner: asyncio.Runner) -> None:
    async def story() -> None:
        pool = Pool(database.dsn, 2)
        first = await pool.take()
        pool.give_back(first)
        assert await pool.take() is first
        second = await pool.take()
        assert second is not first
        pool.give_back(first)
        assert await pool.take() is first
        pool.give_back(first)
        pool.give_back(second)
        await pool.close()

    runner.run(story())


def test_who_waits_is_served_in_order(database: Database, runner: asyncio.Runner) -> None:
    async def story() -> list[int]:
        pool, served = Pool(database.dsn, 1), []

        async def use(number: int) -> None:
            connection = await pool.take()
            served.append(number)
            assert await connection.fetchval("SELECT 1") == 1
            pool.give_back(connection)

        await asyncio.gather(*(use(number) for number in range(5)))
        await pool.close()
        return served

    assert runner.run(story()) == [0, 1, 2, 3, 4]


def test_who_is_in_a_hurry_comes_before_those_who_are_not(database: Database, runner: asyncio.Runner) -> None:
    async def story() -> list[str]:
        pool, served = Pool(database.dsn, 1), []
        held = await pool.take()

        async def use(name: str, hurry: bool) -> None:
            connection = await pool.take(hurry)
            served.append(name)
            pool.give_back(connection)

        lines = [("read", False), ("read again", False), ("beat", True), ("commit", True)]
        users = [asyncio.create_task(use(name, hurry)) for name, hurry in lines]
        await turns(1)
        pool.give_back(held)
        await asyncio.gather(*users)
        await pool.close()
        return served

    assert runner.run(story()) == ["beat", "commit", "read", "read again"]


def test_nobody_slips_in_before_one_who_waits(database: Database, runner: asyncio.Runner) -> None:
    async def story() -> None:
        pool = Pool(database.dsn, 1)
        held = await pool.take()
        waiting = asyncio.create_task(pool.take())
        await turns(1)
        pool.give_back(held)
        late = asyncio.create_task(pool.take())  # asks before the other one has noticed
        assert await waiting is held
        await turns(1)
        assert not late.done()
        pool.give_back(held)
        assert await late is held
        pool.give_back(held)
        await pool.close()

    runner.run(story())


def test_a_waiter_that_gives_up_passes_its_turn_on(database: Database, runner: asyncio.Runner) -> None:
    async def story() -> None:
        pool = Pool(database.dsn, 1)
        connection = await pool.take()
        impatient, patient = asyncio.create_task(pool.take()), asyncio.create_task(pool.take())
        await turns(1)
        pool.give_back(connection)
        impatient.cancel()
        assert await patient is connection
        assert impatient.cancelled()
        pool.give_back(connection)
        await pool.close()

    runner.run(story())


def test_a_lost_connection_is_given_to_nobody(database: Database, runner: asyncio.Runner) -> None:
    async def story() -> None:
        pool = Pool(database.dsn, 1)
        connection = await pool.take()
        lost = connection.get_server_pid()
        pool.give_back(connection)
        closed = asyncio.Event()
        connection.add_termination_listener(lambda _connection: closed.set())
        await run_all(database.dsn, f"SELECT pg_terminate_backend({lost})")
        await closed.wait()
        other = await pool.take()
        assert await other.fetchval("SELECT 1") == 1
        pool.give_back(other)
        await pool.close()

    runner.run(story())


def test_who_was_interrupted_leaves_room_for_the_next(database: Database, runner: asyncio.Runner) -> None:
    async def story() -> None:
        pool = Pool(database.dsn, 1)
        pool.throw_away(await pool.take())
        pool.give_back(await pool.take())
        await pool.close()

    runner.run(story())


def test_a_server_that_refuses_leaves_room_for_the_next(runner: asyncio.Runner) -> None:
    async def story() -> None:
        pool = Pool("postgresql:///nothing?host=/nowhere", 1)
        for _ in range(2):
            with pytest.raises(OSError):
                await pool.take()

    runner.run(story())


def test_closing_waits_for_what_is_taken(database: Database, runner: asyncio.Runner) -> None:
    async def story() -> None:
        pool = Pool(database.dsn, 2)
        connection = await pool.take()
        closing = asyncio.create_task(pool.close())
        await turns(1)
        assert not closing.done()
        assert await connection.fetchval("SELECT 1") == 1
        pool.give_back(connection)
        await closing
        assert connection.is_closed()
        with pytest.raises(asyncpg.InterfaceError, match="closed"):
            await pool.take()

    runner.run(story())


def test_what_nobody_needs_for_long_is_closed(
    database: Database, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        now = 0.0
        monkeypatch.setattr(pools, "monotonic", lambda: now)
        pool = Pool(database.dsn, 3)
        taken = [await pool.take() for _ in range(3)]
        for connection in taken:
            pool.give_back(connection)
        now = pools.IDLE_S + 1
        last = await pool.take()
        assert last is taken[2]
        pool.give_back(last)
        async with asyncio.timeout(10):
            while not taken[0].is_closed():
                await turns(1)
        assert [connection.is_closed() for connection in taken] == [True, False, False]
        await pool.close()

    runner.run(story())
