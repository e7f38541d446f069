"""What a page of a list looks at on PostgreSQL: about as many runs as it shows, however many there are, and whatever
the server knew about the table when it planned the list."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import msgspec
import pytest

from tests.postgres import new_database
from treadle.model.states import RunStatus
from treadle.store.port import RunQuery
from treadle.store.postgres import PostgresStore
from treadle.store.postgres.connect import prepare, reach
from treadle.store.postgres.run_queries import find_runs

MANY, LATE = 30_000, 6_000
"""Runs, and how many of them are still under way: the newest, but for a few."""
PAGE = 100
PAGES_MAX, PAGES_MAX_TAGGED = 200, 600
"""Pages of the database; the runs have some 1,400. Of a tag that many have, each run is looked for among the tagged."""
FILL = f"""INSERT INTO runs (run, shard, workflow, version, status, busy, seq, started, changed, first_day, last_day)
SELECT 'r' || n, 0, CASE n % 5000 WHEN 11 THEN 'rare' ELSE 'w' END, 1,
    CASE WHEN n % 3000 = 7 THEN 'cancelled' WHEN n % 10 = 3 THEN 'failed' WHEN n <= {MANY - LATE} THEN 'completed'
    ELSE 'running' END, false, 1, n, n, '2026-01-01', '2026-01-01' FROM generate_series(1, {MANY}) AS n"""
OTHERS = "INSERT INTO tags (run, tag) SELECT run, CASE WHEN created % 2 = 0 THEN 'even' ELSE 'odd' END FROM runs"
PLANNED = ("on an empty table", "on a table nobody has counted", "when no run had ended", "when all is known")

LISTS: dict[str, dict[str, Any]] = {
    "completed": {"statuses": (RunStatus.COMPLETED,)},
    "failed": {"statuses": (RunStatus.FAILED,)},
    "cancelled": {"statuses": (RunStatus.CANCELLED,)},
    "running": {"statuses": (RunStatus.RUNNING,)},
    "paused, which none is": {"statuses": (RunStatus.PAUSED,)},
    "two statuses": {"statuses": (RunStatus.CANCELLED, RunStatus.COMPLETED)},
    "all statuses": {"statuses": tuple(RunStatus)},
    "a workflow": {"workflow": "w"},
    "a rare workflow": {"workflow": "rare"},
    "a status of a workflow": {"workflow": "w", "statuses": (RunStatus.COMPLETED,)},
    "a rare status of a workflow": {"workflow": "w", "statuses": (RunStatus.CANCELLED,)},
    "a status of a rare workflow": {"workflow": "rare", "statuses": (RunStatus.COMPLETED,)},
    "a status and a tag": {"tags": ("even",), "statuses": (RunStatus.COMPLETED,)},
    "a rare status and a tag": {"tags": ("odd",), "statuses": (RunStatus.CANCELLED,)},
    "the oldest completed": {"statuses": (RunStatus.COMPLETED,), "newest_first": False},
    "the oldest failed": {"statuses": (RunStatus.FAILED,), "newest_first": False},
    "completed, far on": {"statuses": (RunStatus.COMPLETED,), "beyond": 400},
    "failed, far on": {"statuses": (RunStatus.FAILED,), "beyond": 2_000},
    "a workflow, far on": {"workflow": "w", "beyond": 400},
    "completed, started early": {"statuses": (RunStatus.COMPLETED,), "started_until": 300},
    "failed, in a piece": {"statuses": (RunStatus.FAILED,), "beyond": 9_000, "down_to": 8_000},
}


class Explained:
    """A connection that counts the pages each statement looks at. Like the store's it plans a statement once."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self.connection = connection
        self.pages = 0
        self.plans: list[str] = []
        self._known: dict[str, str] = {}

    async def fetch(self, sql: str, *given: Any) -> Any:
        if sql not in self._known:
            self._known[sql] = f"list_{len(self._known)}"
            await self.connection.execute(f"PREPARE {self._known[sql]} AS {sql}")
        values = f"({', '.join(_literal(value) for value in given)})" if given else ""
        (row,) = await self.connection.fetch(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {self._known[sql]}{values}"
        )
        (explained,) = msgspec.json.decode(row[0])
        self.pages += explained["Plan"]["Shared Hit Blocks"] + explained["Plan"]["Shared Read Blocks"]
        self.plans.append(row[0])
        return await self.connection.fetch(sql, *given)

    async def fetchrow(self, sql: str, *given: Any) -> Any:
        return next(iter(await self.fetch(sql, *given)), None)

    async def fetchval(self, sql: str, *given: Any) -> Any:
        row = await self.fetchrow(sql, *given)
        return row[0] if row is not None else None


def _literal(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"ARRAY[{', '.join(_literal(one) for one in value)}]"
    return f"'{value}'" if isinstance(value, str) else f"({value})"


@pytest.fixture(scope="module", params=PLANNED)
def planned(request: pytest.FixtureRequest) -> Iterator[tuple[asyncio.Runner, Explained]]:
    """A store that has planned the lists earlier than now, or now."""
    with new_database() as dsn, asyncio.Runner() as runner:
        explained = runner.run(_planned(dsn, request.param))
        yield runner, explained
        runner.run(explained.connection.close())


async def _planned(dsn: str, when: str) -> Explained:
    store = await PostgresStore.open(dsn)
    await store.close()
    connection = await reach(dsn)
    await prepare(connection)
    explained = Explained(connection)
    await connection.execute("ALTER TABLE runs SET (autovacuum_enabled = off)")
    await connection.execute("ALTER TABLE tags SET (autovacuum_enabled = off)")
    if when == "on an empty table":
        await _ask_all(explained)
    await connection.execute(FILL)
    await connection.execute(OTHERS)
    if when == "when no run had ended":
        await connection.execute("BEGIN")
        await connection.execute("UPDATE runs SET status = 'running'")
        await connection.execute("ANALYZE")
        await _ask_all(explained)
        await connection.execute("ROLLBACK")
    if when == "when all is known":
        await connection.execute("VACUUM ANALYZE")
    await _ask_all(explained)  # the first reader of a row marks it as committed
    return explained


async def _ask_all(explained: Explained) -> None:
    for asked in LISTS.values():
        await find_runs(explained, _query(asked), print)


def _query(asked: dict[str, Any]) -> RunQuery:
    return RunQuery(**{"newest_first": True, "limit": PAGE, **asked})


@pytest.mark.parametrize("name", LISTS)
def test_a_page_looks_at_what_it_shows(planned: tuple[asyncio.Runner, Explained], name: str) -> None:
    runner, explained = planned
    explained.pages, explained.plans = 0, []
    runner.run(find_runs(explained, _query(LISTS[name]), print))
    assert explained.pages < (PAGES_MAX_TAGGED if "tags" in LISTS[name] else PAGES_MAX), "\n".join(explained.plans)
