"""Real conflicts: another session holds locks, and the server itself says who has to try again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from tests.contract.making import OTHER, RUN, WORK, Spoken, begin, commit
from tests.postgres import new_database, run_all
from treadle.errors import StoreConflict
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.store.port import Batch, Fence, RunQuery
from treadle.store.postgres import PostgresStore
from treadle.store.rows import SHARD

BLOCKED = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
STEPS = 15


class World:
    """A store of one shard, and other people's sessions."""

    def __init__(self, dsn: str, runner: asyncio.Runner, **options: Any) -> None:
        self.dsn = dsn
        self.run = runner.run
        self.store: Any = Spoken(runner.run(PostgresStore.open(dsn, shards=1, connections_max=4)), runner)
        self.verbs: PostgresStore = self.store.store  # type: ignore[assignment]

    @asynccontextmanager
    async def somebody(self, *statements: str) -> AsyncIterator[asyncpg.Connection]:
        """A session in the middle of a transaction."""
        connection = await asyncpg.connect(self.dsn)
        try:
            await connection.execute("BEGIN")
            for statement in statements:
                await connection.execute(statement)
            yield connection
        finally:
            await connection.close()

    async def blocked(self, count: int) -> None:
        """Returns once so many sessions wait for a lock, no more and no fewer."""
        connection = await asyncpg.connect(self.dsn)
        async with asyncio.timeout(20):
            while await connection.fetchval(BLOCKED) != count:
                pass
        await connection.close()


@pytest.fixture
def world(runner: asyncio.Runner) -> Iterator[World]:
    with new_database() as dsn:
        name = dsn.split("?")[0].rpartition("/")[2]
        runner.run(run_all(dsn, f"ALTER DATABASE {name} SET deadlock_timeout = '100ms'"))
        made = World(dsn, runner)
        yield made
        assert made.store.integrity() == []
        made.store.close()


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[type[Exception]]:
    """What the server has said about commits."""
    heard: list[type[Exception]] = []
    real = asyncpg.Connection.fetchrow

    async def fetchrow(connection: Any, sql: str, *given: Any, **named: Any) -> Any:
        try:
            return await real(connection, sql, *given, **named)
        except asyncpg.PostgresError as problem:
            heard.append(type(problem))
            raise

    monkeypatch.setattr(asyncpg.Connection, "fetchrow", fetchrow)
    return heard


def step(seq: int, run: RunId = RUN) -> Batch:
    return Batch([commit(seq, e.Custom(seq + 1, seq, "x"), run=run)])


def test_an_heir_waits_for_the_commit_under_way_and_then_fences_it_off(world: World) -> None:
    fence = world.store.held()
    world.store.commit(begin(), fence)

    async def both() -> Fence | None:
        async with world.somebody(f"SELECT 1 FROM runs WHERE run = '{RUN}' FOR UPDATE") as held_up:
            committing = asyncio.ensure_future(world.verbs.commit(step(1), fence))
            await world.blocked(1)
            inheriting = asyncio.create_task(world.verbs.lease(SHARD, "b", 1_000, 100))
            await world.blocked(2)  # the heir, too
            assert len(await world.verbs.find_runs(RunQuery())) == 1, "readers do not wait"
            await held_up.execute("ROLLBACK")
            await committing
            heir: Fence | None = await inheriting
        return heir

    heir = world.run(both())
    assert heir is not None and heir.epoch == 2
    assert len(world.store.history(RUN)) == 2
    with pytest.raises(StoreConflict):
        world.store.commit(step(2), fence)


def test_a_commit_that_waited_behind_an_heir_is_fenced_off(world: World) -> None:
    fence = world.store.held()
    world.store.commit(begin(), fence)

    async def late() -> None:
        take_over = f"UPDATE leases SET owner = 'b', epoch = epoch + 1 WHERE shard = {SHARD}"
        async with world.somebody(take_over) as heir:
            committing = asyncio.ensure_future(world.verbs.commit(step(1), fence))
            await world.blocked(1)
            await heir.execute("COMMIT")
            with pytest.raises(StoreConflict) as refused:
                await committing
        assert refused.value.shards == (SHARD,)

    world.run(late())
    assert len(world.store.history(RUN)) == 1


def test_who_gives_up_waiting_leaves_nothing_behind(world: World) -> None:
    fence = world.store.held()

    async def give_up() -> None:
        async with world.somebody(f"SELECT 1 FROM leases WHERE shard = {SHARD} FOR UPDATE"):
            for _ in range(6):  # more than there are connections
                committing = asyncio.ensure_future(world.verbs.commit(begin(), fence))
                await world.blocked(1)
                committing.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await committing
                await world.blocked(0)  # the server has been told

    world.run(give_up())
    assert world.store.runs() == []
    world.store.commit(begin(), fence)


def test_the_loser_of_a_deadlock_tries_again(world: World, refused: list[type[Exception]]) -> None:
    fence = world.store.held()
    world.store.commit(begin(), fence)

    async def cross() -> None:
        async with world.somebody(f"SELECT 1 FROM runs WHERE run = '{RUN}' FOR UPDATE") as other:
            committing = asyncio.ensure_future(world.verbs.commit(step(1), fence))
            await world.blocked(1)  # it has the lease and wants the run; the other way round:
            await other.execute("SET LOCAL deadlock_timeout = '1min'")  # the commit notices first, however busy it is
            await other.execute(f"SELECT 1 FROM leases WHERE shard = {SHARD} FOR UPDATE")
            await other.execute("ROLLBACK")
            await committing

    world.run(cross())
    assert refused == [asyncpg.DeadlockDetectedError]
    assert [event.seq for event in world.store.history(RUN)] == [1, 2]


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_serialization_failures_are_tried_again(
    world: World, level: str, refused: list[type[Exception]], runner: asyncio.Runner
) -> None:
    """A database may be set to a stricter level: commits that meet on a lease then fail with 40001."""
    fence = world.store.held()
    world.store.commit(Batch([*begin().commits, *begin(OTHER).commits]), fence)
    name = world.dsn.split("?")[0].rpartition("/")[2]
    world.run(run_all(world.dsn, f"ALTER DATABASE {name} SET default_transaction_isolation = '{level}'"))
    strict: Any = Spoken(runner.run(PostgresStore.open(world.dsn, connections_max=4)), runner)

    async def side_by_side() -> None:
        async def walk(run: RunId) -> None:
            for seq in range(1, STEPS):
                await strict.store.commit(Batch(step(seq, run).commits), fence)

        take_over = f"UPDATE leases SET until = until WHERE shard = {SHARD}"
        async with world.somebody(take_over) as other:
            both = asyncio.gather(walk(RUN), walk(OTHER))
            await world.blocked(2)
            await other.execute("COMMIT")
            await both

    world.run(side_by_side())
    assert asyncpg.SerializationError in refused, "they really met"
    assert len(strict.history(RUN)) == len(strict.history(OTHER)) == STEPS
    strict.close()


def test_commits_of_one_shard_follow_each_other_whatever_they_are_about(world: World) -> None:
    fence = world.store.held()
    names = [RunId(f"run-{i}") for i in range(12)]

    async def crowd() -> list[list[int]]:
        rows = await asyncio.gather(*(world.verbs.commit(begin(run, WORK, WORK), fence) for run in names))
        return [[row.id for row in given] for given in rows]

    given = world.run(crowd())
    assert sorted(given) == sorted(given, key=lambda ids: ids[1]), "the ids of a commit are not torn apart by others'"
    assert len(world.store.outbox(SHARD)) == 24
