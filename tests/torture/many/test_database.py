"""What is done to the database is really done, and is over when everybody has to finish."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import asyncpg
import pytest

from tests.postgres_server import Server, binaries
from tests.torture.many.database import LOCKED, Hands
from treadle.store.postgres.connect import migrate
from treadle.testing.world.store_names import NoPostgres

FOR_EVER_S = 3_600.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    try:
        made = Server(binaries())
    except NoPostgres as problem:
        pytest.skip(str(problem))
    try:
        asyncio.run(migrate(made.address(), 4))
        yield made
    finally:
        made.close()


@pytest.fixture
def hands(server: Server) -> Iterator[Hands]:
    made = Hands(lambda: server, seed=1)
    try:
        yield made
    finally:
        made.heal()
        made.close()


def say(server: Server, *statements: str) -> None:
    async def story() -> None:
        connection = await asyncpg.connect(server.address())
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(story())


def ends_with(kind: type[Exception], what: Callable[[], None]) -> None:
    """What was done to a server that is busy is felt a moment later."""
    while True:
        try:
            what()
        except kind:
            return


def test_a_lock_keeps_everybody_out_of_a_table(server: Server, hands: Hands) -> None:
    assert hands.strike("lock", FOR_EVER_S)
    tables = [f"SET lock_timeout = 1; SELECT count(*) FROM {table}" for table in LOCKED]
    with pytest.raises(asyncpg.LockNotAvailableError):
        say(server, *tables)


def test_a_time_out_cuts_statements_off_until_it_is_over(server: Server, hands: Hands) -> None:
    assert hands.strike("timeout", FOR_EVER_S)
    ends_with(asyncpg.QueryCanceledError, lambda: say(server, "SELECT pg_sleep(0.5)"))
    hands.heal()
    say(server, "SELECT pg_sleep(0.05)")


def test_a_flood_leaves_no_connection(server: Server, hands: Hands) -> None:
    assert hands.strike("flood", FOR_EVER_S)
    ends_with(asyncpg.TooManyConnectionsError, lambda: say(server, "SELECT 1"))
    assert not hands.strike("terminate", 0), "nobody can be told any more"


def test_backends_are_ended_and_frozen_ones_go_on(server: Server, hands: Hands) -> None:
    async def story() -> None:
        opened = [await asyncpg.connect(server.address()) for _ in range(30)]
        assert await asyncio.to_thread(hands.strike, "freeze", FOR_EVER_S)
        asked = [asyncio.ensure_future(one.fetchval("SELECT 1")) for one in opened]
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        hands.wake()
        assert await asyncio.gather(*asked) == [1] * 30
        assert await asyncio.to_thread(hands.strike, "terminate", 0)
        gone = await asyncio.gather(*(one.fetchval("SELECT 1") for one in opened), return_exceptions=True)
        assert 1 in gone
        assert any(isinstance(one, Exception) for one in gone)
        for one in opened:
            one.terminate()

    asyncio.run(story())
