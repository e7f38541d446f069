"""Claiming queue work on PostgreSQL: what a claim costs beside its backlog, and how long 64 who claim at once wait.

The floor of a claim is the least a claimer could do: one UPDATE of the oldest row with SKIP LOCKED and no order but
age, under the same crowd. A claim beside it also knows priorities, keys and limits. The 64 share nothing but the
database and one Python: each has a store, a connection and a memory of its own, as 64 processes would, and has claimed
before. What is compared takes turns, and the median of the laps counts.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict
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
KEYS = (1, 10, 1_000)
LONE = 100
CLAIMERS = 64
EACH = 20
"""Claims of each of the 64, in each lap: a 99th percentile over some 1,300."""
LAPS = 3
PAGE = 5_000
BARE = """UPDATE work SET worker = $1, number = number + 1, until = 1 WHERE (run, token) = (
    SELECT run, token FROM work WHERE queue = $2 AND worker IS NULL AND NOT held
    ORDER BY queue, priority, key, position LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING run, token, number, effect"""
CLAIM_MANY = """UPDATE work SET worker = 'gone', number = 1, until = 1 WHERE position <
    (SELECT min(position) FROM work) + $1"""
LIMITED = QueueRules(concurrency=1_000_000, key_concurrency=1_000_000)
CROWDS = (
    ("1 key", 1, NO_RULES, 1),
    ("50 keys", 50, NO_RULES, 1),
    ("50 keys, limits", 50, LIMITED, 1),
    ("50 keys, 8 at a time", 50, NO_RULES, 8),
)

Claim = Callable[[], Awaitable[object]]


def run(report: Report) -> None:
    with running_server() as server:
        asyncio.run(_all(report, server.database("claims")))


async def _all(report: Report, place: str) -> None:
    store = await PostgresStore.open(place, connections_max=1)
    try:
        fence = await store.lease(store.shard_of(RUN), "bench", None, 10_000_000)
        assert fence is not None
        started = e.RunStarted(1, 0, RUN, "w", 1, "hash", None)
        await store.commit(Batch([Commit(RUN, 0, [started], [], RunStatus.RUNNING)]), fence)
        await _backlogs(report, store, fence, place)
        await _open_transaction(report, store, fence, place)
        await _crowds(report, store, fence, place)
    finally:
        await store.close()


async def _backlogs(report: Report, store: PostgresStore, fence: Fence, place: str) -> None:
    """One claimer; everything waits with one key, with ten, with more than a claim looks at."""
    for keys in KEYS:
        first: float | None = None
        for backlog in BACKLOGS:
            report.doing(f"a backlog of {backlog}")
            await _offer(store, fence, place, backlog, keys)
            took = await _timed(lambda: store.claim("q", "w", 1, 60_000), min(LONE, backlog))
            name = f"one claim, {backlog:,} waiting, {'1 key' if keys == 1 else f'{keys:,} keys'}"
            p50 = statistics.median(took)
            first = first or p50
            report.figure(f"{name}, p50", p50 * 1_000, "ms", first * 1_000)


async def _open_transaction(report: Report, store: PostgresStore, fence: Fence, place: str) -> None:
    """Nothing that is claimed leaves the index meanwhile."""
    report.doing("a long-open transaction")
    await _offer(store, fence, place, 100_000, 10)
    reader, writer = await asyncpg.connect(place), await asyncpg.connect(place)
    transaction = reader.transaction(isolation="repeatable_read")
    await transaction.start()
    await reader.fetchval("SELECT count(*) FROM work")
    before: float | None = None
    for gone in (0, 20_000, 80_000):
        await writer.execute(CLAIM_MANY, gone)
        took = await _timed(lambda: store.claim("q", "w", 32, 60_000), LONE)
        p50 = statistics.median(took)
        before = before or p50
        name = f"one claim of 32 of 10 keys beside an open transaction, {gone:,} claimed since"
        report.figure(f"{name}, p50", p50 * 1_000, "ms", before * 1_000)
    await transaction.rollback()
    await reader.close()
    await writer.close()


async def _crowds(report: Report, store: PostgresStore, fence: Fence, place: str) -> None:
    took: dict[str, list[list[float]]] = defaultdict(list)
    stores = [await PostgresStore.open(place, connections_max=1) for _ in range(CLAIMERS)]
    try:
        for lap in range(LAPS + 1):  # the first is there to warm up
            for name, keys, rules, limit in (("bare", 1, None, 1), *CROWDS):
                report.doing(f"{CLAIMERS} claimers, {name}, lap {lap}")
                queue = f"{name} {lap}"  # one that nobody remembers anything about
                await _offer(store, fence, place, (CLAIMERS * EACH + 1_000) * limit, keys, queue)
                took[name].append(await _crowd([_claiming(one, queue, rules, limit) for one in stores]))
    finally:
        for one in stores:
            await one.close()
    for name, *_ in CROWDS:
        for percentile in (50, 99):
            value, floor = (_typical(took[one][1:], percentile) for one in (name, "bare"))
            report.figure(f"{CLAIMERS} claim at once, {name}, p{percentile}", value * 1_000, "ms", floor * 1_000)


def _typical(laps: list[list[float]], percentile: int) -> float:
    return statistics.median(statistics.quantiles(lap, n=100)[percentile - 1] for lap in laps)


def _claiming(store: PostgresStore, queue: str, rules: QueueRules | None, limit: int) -> Claim:
    if rules is None:
        return lambda: store._connections.write_alone(lambda connection: connection.fetchrow(BARE, "w", queue))
    return lambda: store.claim(queue, "w", limit, 60_000, rules)


async def _crowd(claims: Sequence[Claim]) -> list[float]:
    took: list[float] = []

    async def one(claim: Claim) -> None:
        for _ in range(EACH):
            begun = time.perf_counter()
            assert await claim(), "there is enough for everybody"
            took.append(time.perf_counter() - begun)

    await asyncio.gather(*(one(claim) for claim in claims))
    return took


async def _timed(claim: Callable[[], Awaitable[Sequence[object]]], times: int) -> list[float]:
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        assert await claim()
        took.append(time.perf_counter() - begun)
    return took


async def _offer(store: PostgresStore, fence: Fence, place: str, count: int, keys: int, queue: str = "q") -> None:
    """So much and nothing else waits."""
    connection = await asyncpg.connect(place)
    await connection.execute("TRUNCATE work, meters")
    for first in range(0, count, PAGE):
        offers = [
            OfferWork(TokenId(number + 1), 1, "n", {"x": number}, queue, f"k{number % keys:02}", "w", 1, "root")
            for number in range(first, min(first + PAGE, count))
        ]
        await store.commit(Batch([Commit(RUN, 1, [], offers, RunStatus.RUNNING)]), fence)
    await connection.execute("VACUUM ANALYZE work")
    await connection.close()
