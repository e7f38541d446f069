"""Claiming queue work on PostgreSQL: what a claim costs beside its backlog, and how long 64 who claim at once wait.

The floor of a claim is the least a claimer could do: one UPDATE of the oldest row with SKIP LOCKED and no order but
age, under the same crowd. A claim beside it also knows priorities, keys and limits.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence

import asyncpg

from bench.postgres_server import running_server
from bench.report import Report
from treadle.model import events as e
from treadle.model.effects import OfferWork
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.store.port import Batch, Commit, Fence
from treadle.store.postgres import PostgresStore
from treadle.store.work import NO_RULES, QueueRules

NAME = "claims"

RUN = RunId("0198c0de-0000-7000-8000-000000000002")
BACKLOGS = (100, 10_000, 100_000)
LONE = 100
CLAIMERS = 64
EACH = 30
"""Claims of each of the 64: enough for a 99th percentile over some 2,000."""
PAGE = 5_000
BARE = """UPDATE work SET worker = $1, number = number + 1, until = 1 WHERE (run, token) = (
    SELECT run, token FROM work WHERE queue = 'q' AND worker IS NULL AND NOT held
    ORDER BY queue, priority, key, position LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING run, token, number, effect"""
LIMITED = QueueRules(concurrency=1_000_000, key_concurrency=1_000_000)


def run(report: Report) -> None:
    with running_server() as server:
        asyncio.run(_all(report, server.database("claims")))


async def _all(report: Report, place: str) -> None:
    store = await PostgresStore.open(place, connections_max=CLAIMERS)
    try:
        fence = await store.lease(store.shard_of(RUN), "bench", None, 10_000_000)
        assert fence is not None
        started = e.RunStarted(1, 0, RUN, "w", 1, "hash", None)
        await store.commit(Batch([Commit(RUN, 0, [started], [], RunStatus.RUNNING)]), fence)
        await _backlogs(report, store, fence, place)
        await _crowds(report, store, fence, place)
    finally:
        await store.close()


async def _backlogs(report: Report, store: PostgresStore, fence: Fence, place: str) -> None:
    """One claimer; everything waits with one key, then with ten."""
    first: dict[str, float] = {}
    for keys in (1, 10):
        for backlog in BACKLOGS:
            report.doing(f"a backlog of {backlog}")
            await _offer(store, fence, place, backlog, keys)
            took = await _timed(lambda: store.claim("q", "w", 1, 60_000), min(LONE, backlog))
            name = f"one claim, {backlog:,} waiting, {'1 key' if keys == 1 else f'{keys} keys'}"
            p50 = statistics.median(took)
            report.figure(f"{name}, p50", p50 * 1_000, "ms", first.setdefault(f"{keys}", p50) * 1_000)
    report.doing("a long-open transaction")
    await _offer(store, fence, place, 20_000, 1)
    reader = await asyncpg.connect(place)
    transaction = reader.transaction(isolation="repeatable_read")
    await transaction.start()
    await reader.fetchval("SELECT count(*) FROM work")
    for part in range(3):
        took = await _timed(lambda: store.claim("q", "w", 32, 60_000), 100)
        name = f"one claim of 32 beside an open transaction, {part * 100}–{part * 100 + 100} before"
        report.figure(f"{name}, p50", statistics.median(took) * 1_000, "ms")
    await transaction.rollback()
    await reader.close()


async def _crowds(report: Report, store: PostgresStore, fence: Fence, place: str) -> None:
    rows = CLAIMERS * EACH + 1_000
    await _offer(store, fence, place, rows, 1)
    pool = await asyncpg.create_pool(place, min_size=CLAIMERS, max_size=CLAIMERS)
    await asyncio.gather(*(store.claim("nothing", "w", 1, 1) for _ in range(CLAIMERS)))  # connections are there
    bare = await _crowd(lambda worker: pool.fetchrow(BARE, worker))
    await pool.close()
    for name, keys, rules, limit in (
        ("1 key", 1, NO_RULES, 1),
        ("50 keys", 50, NO_RULES, 1),
        ("50 keys, limits", 50, LIMITED, 1),
        ("50 keys, 8 at a time", 50, NO_RULES, 8),
    ):
        report.doing(f"{CLAIMERS} claimers, {name}")
        await _offer(store, fence, place, rows * limit, keys)
        took = await _crowd(_claiming(store, rules, limit))
        for percentile in (50, 99):
            floor = statistics.quantiles(bare, n=100)[percentile - 1]
            value = statistics.quantiles(took, n=100)[percentile - 1]
            report.figure(f"{CLAIMERS} claim at once, {name}, p{percentile}", value * 1_000, "ms", floor * 1_000)


def _claiming(store: PostgresStore, rules: QueueRules, limit: int) -> Callable[[str], Awaitable[object]]:
    return lambda worker: store.claim("q", worker, limit, 60_000, rules)


async def _crowd(claim: Callable[[str], Awaitable[object]]) -> list[float]:
    took: list[float] = []

    async def one(worker: str) -> None:
        for _ in range(EACH):
            begun = time.perf_counter()
            assert await claim(worker), "there is enough for everybody"
            took.append(time.perf_counter() - begun)

    await asyncio.gather(*(one(f"w{number}") for number in range(CLAIMERS)))
    return took


async def _timed(claim: Callable[[], Awaitable[Sequence[object]]], times: int) -> list[float]:
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        assert await claim()
        took.append(time.perf_counter() - begun)
    return took


async def _offer(store: PostgresStore, fence: Fence, place: str, count: int, keys: int) -> None:
    """So much and nothing else waits."""
    connection = await asyncpg.connect(place)
    await connection.execute("TRUNCATE work, meters")
    for first in range(0, count, PAGE):
        offers = [
            OfferWork(TokenId(number + 1), 1, "n", {"x": number}, "q", f"k{number % keys:02}", "w", 1, "root")
            for number in range(first, min(first + PAGE, count))
        ]
        await store.commit(Batch([Commit(RUN, 1, [], offers, RunStatus.RUNNING)]), fence)
    await connection.execute("VACUUM ANALYZE work")
    await connection.close()
