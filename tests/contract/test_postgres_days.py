"""History by day: a new day begins, and nobody notices."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from tests.contract.life import Life, name_of, step
from tests.contract.making import RUN, Spoken, begin
from treadle.store.postgres import PostgresStore, days


def test_a_run_that_lives_for_days_is_read_as_one(life: Life) -> None:
    fence = life.store.held()
    life.store.commit(begin(), fence)
    for seq in range(1, 4):
        day = life.next_day()
        life.store.commit(step(seq), fence)
        assert life.places(RUN)[-1] == name_of(day)
    assert len(set(life.places(RUN))) == 4
    assert [event.seq for event in life.store.history(RUN)] == [1, 2, 3, 4]
    assert [event.seq for event in life.store.history(RUN, after=2, limit=1)] == [3]


def test_only_the_partitions_of_a_runs_days_are_read(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    fence = life.store.held()
    life.next_day()
    life.store.commit(begin(), fence)
    life.next_day()
    life.store.commit(step(1), fence)
    for _ in range(2):
        life.next_day()
    with monkeypatch.context() as patched:
        asked: list[str] = []
        real = asyncpg.Connection.fetch

        async def fetch(connection: Any, sql: str, *given: Any) -> Any:
            plan = await real(connection, f"EXPLAIN (COSTS off) {sql}", *given)
            asked.append("".join(name for (line,) in plan for name in re.findall(r"history_\w+ history", line)))
            return await real(connection, sql, *given)

        patched.setattr(asyncpg.Connection, "fetch", fetch)
        assert len(life.store.history(RUN)) == 2
    assert [len(re.findall("history_", plan)) for plan in asked] == [1, 2], "a first guess, then those of its days"
    assert len(life.store.history(RUN)) == 2


def test_midnight_is_noticed_by_whoever_commits_or_beats(life: Life, runner: asyncio.Runner) -> None:
    fence = life.store.held()
    life.store.store._days._look_at = 0.0
    life.store.commit(begin(), fence)
    today = datetime.now(UTC).date()
    assert life.places(RUN) == [name_of(today)]
    assert life.ask("SELECT day FROM calendar") == [(today,)]
    assert life.partitions() == sorted(["history_first", name_of(today)])
    runner.run(life.store.store._days.look())
    assert len(life.partitions()) == 2, "once a day"


def test_of_many_nodes_at_midnight_one_makes_the_partition(life: Life, runner: asyncio.Runner) -> None:
    others = [life.open() for _ in range(3)]

    async def at_once() -> None:
        await asyncio.gather(*(other.store._days.look() for other in others))

    runner.run(at_once())
    assert len(life.partitions()) == 2
    for other in others:
        other.close()


def test_a_node_that_is_killed_at_midnight_leaves_everything_as_it_was(life: Life, runner: asyncio.Runner) -> None:
    fence = life.store.held()

    async def die() -> None:
        connection = await asyncpg.connect(life.dsn)
        async with connection.transaction():
            await days.turn(connection)
            await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)):
        runner.run(die())
    assert life.partitions() == ["history_first"]
    life.store.commit(begin(), fence)
    assert life.places(RUN) == ["history_first"]
    runner.run(life.store.store._days.look())
    assert len(life.partitions()) == 2


def test_who_may_not_make_tables_goes_on_with_the_last_partition(life: Life, runner: asyncio.Runner) -> None:
    if "postgres:@" not in life.dsn:
        pytest.skip("this server asks for passwords: it is not ours to make users on")
    fence = life.store.held()
    life.ask("CREATE ROLE clerk_of_days LOGIN")
    life.ask("GRANT ALL ON ALL TABLES IN SCHEMA public TO clerk_of_days")
    life.ask("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO clerk_of_days")
    try:
        clerk = PostgresStore.open(life.dsn.replace("postgres:@", "clerk_of_days:@"), connections_max=1)
        poor: Any = Spoken(runner.run(clerk), runner)
        poor.commit(begin(), fence)
        poor.close()
        assert life.partitions() == life.places(RUN) == ["history_first"]
    finally:
        life.ask("DROP OWNED BY clerk_of_days")
        life.ask("DROP ROLE clerk_of_days")
