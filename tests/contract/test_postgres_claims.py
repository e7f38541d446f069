"""Claims on PostgreSQL: they cost the same however long the lines are (what the server touches is counted, not timed),
and every key gets its turn."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any

import asyncpg
import msgspec
import pytest

from tests.contract.making import RUN, begin
from treadle.model.effects import OfferWork
from treadle.model.ids import TokenId
from treadle.model.states import RunStatus
from treadle.store.port import Batch, Commit
from treadle.store.postgres.claiming import FIRST, LANES
from treadle.store.postgres.connect import prepare
from treadle.store.postgres.queries import SQL
from treadle.store.rows import SHARD

FILL = """INSERT INTO work (run, token, shard, queue, priority, key, offered, attempt, recovery, effect, held)
SELECT 'r', n, 0, 'q', 1, 'k' || (n % $2), 0, 1, 0, '', false FROM generate_series(1, $1) AS n"""
STATEMENTS: dict[str, list[Any]] = {
    "look_at_lanes": ["q", *FIRST, LANES, 4, True, True, 0],
    "take_work": ["q", "w", 60_000, [1], ["k0"], [4], 0],
    "may_claim": ["q", 10],
    "waiting_queues": [],
}
ROOM = 12
"""Pages: an index of 40,000 rows is a level deeper than one of 400, and a step into it is made once for each lane."""


async def _pages(connection: asyncpg.Connection, name: str, arguments: list[Any]) -> int:
    statement = re.sub(r"\$(\d+)(?!\d)", lambda match: _literal(arguments[int(match[1]) - 1]), SQL[name])
    async with connection.transaction():
        (row,) = await connection.fetch(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}")
    (plan,) = msgspec.json.decode(row[0])
    return int(plan["Plan"]["Shared Hit Blocks"]) + int(plan["Plan"]["Shared Read Blocks"])


def _literal(value: Any) -> str:
    if isinstance(value, list):
        kind = "text" if isinstance(value[0], str) else "integer"
        return f"ARRAY[{', '.join(_literal(one) for one in value)}]::{kind}[]"
    return f"'{value}'" if isinstance(value, str) else f"({value})"


async def _touched(dsn: str, rows: int, keys: int) -> dict[str, int]:
    connection = await asyncpg.connect(dsn)
    try:
        await prepare(connection)
        await connection.execute("TRUNCATE work")
        await connection.execute(FILL, rows, keys)
        await connection.execute("VACUUM ANALYZE work")
        return {name: await _pages(connection, name, arguments) for name, arguments in STATEMENTS.items()}
    finally:
        await connection.close()


@pytest.mark.parametrize("keys", [1, 3, 40])
def test_a_claim_touches_as_much_beside_40_000_waiting_as_beside_400(database: Any, keys: int) -> None:
    few = asyncio.run(_touched(database.dsn, 400, keys))
    many = asyncio.run(_touched(database.dsn, 40_000, keys))
    lanes = min(keys, LANES)
    assert {name: pages for name, pages in many.items() if pages > few[name] + ROOM + 3 * lanes} == {}, few


def test_where_a_line_is_believed_to_begin_hides_nothing(database: Any) -> None:
    """Work that was given back lies before it: found as soon as nothing else is."""

    async def claimed() -> list[int]:
        store = await database.open(payload_max=1_000)
        try:
            fence = await store.lease(SHARD, "a", None, 100_000)
            await store.commit(begin(), fence)
            offers = [OfferWork(TokenId(number), 1, "n", None, "q", "k", "w", 1, "root") for number in (1, 2, 3)]
            await store.commit(Batch([Commit(RUN, 1, [], offers, RunStatus.RUNNING)]), fence)
            (first,) = await store.claim("q", "w", 1, 60_000)
            await store.give_back([first.claim])
            store._marks.note("q", 2)
            return [(await store.claim("q", "w", 1, 60_000))[0].offer.token for _ in range(3)]
        finally:
            await store.close()

    assert asyncio.run(claimed()) == [2, 3, 1]


def test_where_more_keys_wait_than_a_claim_draws_between_all_get_their_turn(database: Any) -> None:
    async def claimed() -> Counter[str]:
        store = await database.open(payload_max=1_000)
        try:
            fence = await store.lease(SHARD, "a", None, 100_000)
            await store.commit(begin(), fence)
            offers = [
                OfferWork(TokenId(number + 1), 1, "n", None, "q", f"k{number % 100:02}", "w", 1, "root")
                for number in range(300)
            ]
            await store.commit(Batch([Commit(RUN, 1, [], offers, RunStatus.RUNNING)]), fence)
            got: Counter[str] = Counter()
            for _ in range(7):  # 7 groups of 16 are once round, and a little
                got.update(one.offer.key for one in await store.claim("q", "w", LANES, 60_000))
            return got
        finally:
            await store.close()

    got = asyncio.run(claimed())
    assert len(got) == 100
    assert max(got.values()) == 2
