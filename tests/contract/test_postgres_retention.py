"""History by day: partitions go when nothing in them is kept."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import asyncpg
import pytest

from tests.contract.life import Life, name_of, step
from tests.contract.making import OTHER, RUN, WORK, begin, commit, ended, started
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.port import Batch
from treadle.store.postgres import days
from treadle.store.postgres.queries import SQL
from treadle.store.rows import SHARD

MANY = [RunId(f"many-{i}") for i in range(40)]


@pytest.fixture
def nothing_is_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(days, "MOVED_MIN", 0)


@pytest.mark.usefixtures("nothing_is_few")
def test_a_partition_goes_when_all_its_runs_are_forgotten(life: Life) -> None:
    fence = life.store.held()
    life.store.commit(ended(), fence)
    first = life.next_day()
    life.store.commit(ended(OTHER), fence)
    for _ in range(2):
        life.next_day()
    life.store.forget([RUN], fence)
    assert life.store.history(RUN) == []
    assert "history_first" not in life.partitions(), "nothing is kept of it"
    assert name_of(first) in life.partitions(), "it holds a run that is kept"
    life.sweep()
    assert len(life.store.history(OTHER)) == 2
    life.store.store._days._sweep_at = 0.0
    life.store.forget([OTHER], fence)
    assert name_of(first) not in life.partitions()
    assert len(life.partitions()) == 2, "today's and yesterday's"


@pytest.mark.usefixtures("nothing_is_few")
def test_the_few_blocks_of_a_run_that_lives_on_are_moved_out_of_the_way(life: Life) -> None:
    fence = life.store.held()
    life.store.commit(begin(), fence)
    life.store.commit(Batch([one for run in MANY for one in ended(run).commits]), fence)
    life.ask("ANALYZE history_first")
    life.next_day()
    life.store.commit(step(1), fence)
    for _ in range(2):
        life.next_day()
    life.store.store._days._sweep_at = float("inf")
    life.store.forget(MANY[:20], fence)
    life.sweep()
    assert "history_first" in life.partitions(), "half of it is kept"
    life.store.forget(MANY[20:], fence)
    life.sweep()
    assert "history_first" not in life.partitions()
    assert [event.seq for event in life.store.history(RUN)] == [1, 2]
    assert life.places(RUN)[0] == name_of(life.day)
    life.store.commit(step(2), fence)
    assert [event.seq for event in life.store.history(RUN)] == [1, 2, 3]


def test_a_new_run_with_the_name_of_a_forgotten_one_is_new(life: Life) -> None:
    fence = life.store.held()
    for late in (False, True):
        life.store.commit(begin(), fence)
        life.store.commit(step(1), fence)
        if late:
            life.next_day()
        life.store.commit(step(2, status=RunStatus.COMPLETED), fence)
        life.store.forget([RUN], fence)
        assert life.store.history(RUN) == []
        life.store.commit(begin(at=7), fence)
        assert life.store.history(RUN) == [started(at=7)]
        life.store.commit(Batch([commit(1, e.RunCompleted(2, 9, {}), status=RunStatus.COMPLETED)]), fence)
        life.store.forget([RUN], fence)


def test_a_run_shortened_later_keeps_its_ends_and_nothing_else(life: Life) -> None:
    fence = life.store.held()
    life.store.commit(begin(), fence)
    life.store.commit(step(1), fence)
    life.next_day()
    over = e.RunCompleted(3, 9, {"answer": 42})
    life.store.commit(Batch([commit(2, over, status=RunStatus.COMPLETED)]), fence)
    life.next_day()
    for _ in range(2):
        life.store.forget([RUN], fence, history=False)
        assert life.store.history(RUN) == [started(), over]
    life.next_day()
    life.sweep()
    assert "history_first" not in life.partitions()
    assert life.store.history(RUN) == [started(), over]
    revived = Batch([commit(3, e.Custom(4, 9, "again"))])
    life.store.commit(revived, fence)
    assert [event.seq for event in life.store.history(RUN)] == [1, 3, 4]


def test_somebody_elses_open_transaction_stalls_nothing(life: Life, runner: asyncio.Runner) -> None:
    """As pg_dump has: a snapshot, and a lock on every table that only forbids to change its shape."""
    fence = life.store.held()
    life.store.commit(ended(OTHER), fence)
    for _ in range(2):
        life.next_day()
    tables = ", ".join(name for (name,) in life.ask("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"))

    async def live() -> None:
        foreign = await asyncpg.connect(life.dsn)
        await foreign.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await foreign.execute(f"LOCK TABLE {tables} IN ACCESS SHARE MODE")
        assert await foreign.fetchval("SELECT count(*) FROM runs") == 1
        store = life.store.store
        async with asyncio.timeout(10):
            await store.commit(begin(RUN, WORK), fence)
            await store._days.look()
            await store.forget([OTHER], fence)
            for seq in range(1, 20):
                rows = await store.outbox(SHARD)
                await store.commit(Batch(step(seq).commits, done=[row.id for row in rows]), fence)
                assert len(await store.history(RUN)) == seq + 1
        assert await foreign.fetchval("SELECT count(*) FROM runs") == 1, "it still sees what it saw"
        await foreign.close()

    runner.run(live())
    assert name_of(datetime.now(UTC).date()) in life.partitions(), "a new day begins all the same"
    assert "history_first" in life.partitions(), "dropping is put off"
    life.sweep()
    assert "history_first" not in life.partitions()


def test_a_commit_beside_the_move_of_old_blocks_loses_none(life: Life, runner: asyncio.Runner) -> None:
    fence = life.store.held()
    life.store.commit(begin(), fence)
    life.store.commit(Batch([one for run in MANY for one in ended(run).commits]), fence)
    life.ask("ANALYZE history_first")
    life.store.store._days._sweep_at = float("inf")
    for _ in range(3):
        life.next_day()
    life.store.forget(MANY, fence)

    async def both() -> None:
        store = life.store.store

        async def steps() -> None:
            for seq in range(1, 30):
                await store.commit(step(seq), fence)

        walking = asyncio.create_task(steps())
        store._days._sweep_at = 0.0
        await asyncio.gather(store._days.sweep(), walking)

    runner.run(both())
    assert "history_first" not in life.partitions()
    assert [event.seq for event in life.store.history(RUN)] == list(range(1, 31))


def test_a_quiet_store_does_not_have_a_partition_for_each_day_of_its_life(life: Life) -> None:
    fence = life.store.held()
    names = [RunId(f"quiet-{i}") for i in range(4)]
    for name in names:
        life.store.commit(ended(name), fence)
        life.next_day()
    life.sweep()
    assert len(life.partitions()) == 2
    assert [len(life.store.history(name)) for name in names] == [2, 2, 2, 2]


@pytest.mark.parametrize("history", [True, False])
def test_what_is_forgotten_while_it_is_about_to_be_moved_stays_behind(
    life: Life, history: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between finding its block of the second day and locking the run, the run is dropped or shortened."""
    fence = life.store.held()
    life.store.commit(ended(OTHER), fence)
    life.store.commit(begin(), fence)
    life.next_day()
    life.store.commit(step(1), fence)
    life.next_day()
    over = e.RunCompleted(3, 9, {"answer": 42})
    life.store.commit(Batch([commit(2, over, status=RunStatus.COMPLETED)]), fence)
    for _ in range(2):
        life.next_day()
    real = asyncpg.Connection.fetch
    holding: list[object] = []

    async def fetch(connection: asyncpg.Connection, sql: str, *given: object, **named: float) -> object:
        if sql == SQL["hold_runs"]:
            holding.append(given)
            if len(holding) == 2:
                await life.store.store.forget([RUN], fence, history=history)
        return await real(connection, sql, *given, **named)

    monkeypatch.setattr(asyncpg.Connection, "fetch", fetch)
    life.sweep()
    assert len(holding) >= 2
    assert life.store.history(RUN) == ([] if history else [started(), over])
    assert len(life.store.history(OTHER)) == 2
    if history:
        life.store.commit(begin(at=7), fence)
        assert life.store.history(RUN) == [started(at=7)]
