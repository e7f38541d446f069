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
from tests.postgres import new_database
from treadle.model.effects import OfferWork, Slot, WithdrawWork
from treadle.model.ids import TokenId
from treadle.model.states import RunStatus
from treadle.store.fairness import Rate
from treadle.store.port import Batch, Commit
from treadle.store.postgres import PostgresStore, claim_memory
from treadle.store.postgres.claim import Claiming
from treadle.store.postgres.claim_memory import FIRST, LANES, QueueLine
from treadle.store.postgres.connect import prepare, reach
from treadle.store.postgres.queries import SQL
from treadle.store.rows import SHARD
from treadle.store.work import QueueRules

FILL = """INSERT INTO work (run, token, shard, queue, priority, key, offered, attempt, recovery, effect, held)
SELECT 'r', n, 0, 'q', 1, 'k' || (n % $2), 0, 1, 0, '', false FROM generate_series(1, $1) AS n"""
STATEMENTS: dict[str, list[Any]] = {
    "look_at_lanes": ["q", *FIRST, LANES, 16, 0, 4, 4, True],
    "take_work": ["q", "w", 60_000, [1], ["k0"], [4], [1], [4], [0], [0], 1, 0, 4],
    "waiting_queues": [],
}
KINDS = {
    "look_at_lanes": "text, int, text, int, int, bigint, int, int, bool",
    "take_work": "text, text, bigint, int[], text[], int[], bigint[], int[], int[], int[], int, bigint, int",
}
ROOM = 12
"""Pages: an index of 40,000 rows is a level deeper than one of 400, and a step into it is made once for each lane."""


async def _pages(connection: asyncpg.Connection, name: str, arguments: list[Any]) -> int:
    """How many the server looks at."""
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
    connection = await reach(dsn)
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


def test_what_an_open_transaction_keeps_in_the_index_is_stepped_over(database: Any) -> None:
    """Nobody can vacuum claimed rows that somebody might still see waiting."""

    async def touched() -> tuple[int, int]:
        connection, reader = await reach(database.dsn), await asyncpg.connect(database.dsn)
        try:
            if connection.get_server_version().major < 18:
                pytest.skip("older servers read them inside the index")
            await prepare(connection)
            await connection.execute("TRUNCATE work RESTART IDENTITY")
            await connection.execute(FILL, 41_000, 10)
            await connection.execute("VACUUM ANALYZE work")
            async with reader.transaction(isolation="repeatable_read"):
                await reader.fetchval("SELECT count(*) FROM work")
                before = await _pages(connection, "look_at_lanes", ["q", *FIRST, LANES, 1, 0, 4, 4, False])
                await connection.execute("UPDATE work SET worker = 'w', until = 1 WHERE position <= 40000")
                mark = ["q", *FIRST, LANES, 1, 40_001, 4, 4, False]
                return before, await _pages(connection, "look_at_lanes", mark)
        finally:
            await connection.close()
            await reader.close()

    before, after = asyncio.run(touched())
    assert after < 2 * before + 10 * ROOM, "some pages for each lane, not those of 40,000 rows"


def test_claims_are_counted_by_queue_and_key_also_when_planned_on_an_empty_table() -> None:
    """Read by shard, every claim under limits would look at all that is claimed, of any queue."""

    async def plan(dsn: str) -> str:
        store = await PostgresStore.open(dsn)
        await store.close()
        connection = await reach(dsn)
        await prepare(connection)
        await connection.execute("VACUUM ANALYZE work")
        lines = []
        for name, kinds in KINDS.items():
            values = ", ".join(_literal(one) for one in STATEMENTS[name])
            await connection.execute(f"PREPARE {name} ({kinds}) AS {SQL[name]}")
            lines += [line for (line,) in await connection.fetch(f"EXPLAIN EXECUTE {name} ({values})")]
        await connection.close()
        return "\n".join(lines)

    with new_database() as dsn:
        shown = asyncio.run(plan(dsn))
    assert "work_at_work" not in shown, shown
    assert shown.count("work_claimed") == 4


def test_who_has_just_looked_takes_without_looking_again(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not while something of a better priority waits, and never what brings a limit of its own."""
    monkeypatch.setattr(claim_memory, "VIEW_S", 1_000.0)
    looks: list[int] = []
    look = Claiming._look_from

    async def counted(self: Claiming, *given: Any) -> Any:
        looks.append(1)
        return await look(self, *given)

    monkeypatch.setattr(Claiming, "_look_from", counted)

    async def claimed() -> list[tuple[int, int]]:
        store = await database.open(payload_max=1_000)
        try:
            fence = await store.lease(SHARD, "a", None, 100_000)
            await store.commit(begin(), fence)

            async def offer(first: int, count: int, priority: int, slot: Slot | None = None) -> None:
                offers = [
                    OfferWork(TokenId(n), 1, "n", None, "q", "k", "w", 1, "root", priority=priority, slot=slot)
                    for n in range(first, first + count)
                ]
                await store.commit(Batch([Commit(RUN, 1, [], offers, RunStatus.RUNNING)]), fence)

            async def take() -> int:
                return int((await store.claim("q", "w", 1, 60_000))[0].offer.token)

            await offer(1, 10, 5)
            got = [(await take(), len(looks)) for _ in range(4)]
            await offer(20, 1, 1)
            got += [(await take(), len(looks)) for _ in range(2)]
            monkeypatch.setattr(store._lines["q"], "_missed_until", 0.0)
            got += [(await take(), len(looks)) for _ in range(2)]
            await store.commit(Batch([Commit(RUN, 1, [], [WithdrawWork(TokenId(9))], RunStatus.RUNNING)]), fence)
            await offer(30, 2, 5, Slot("k", 8))
            return [*got, *[(await take(), len(looks)) for _ in range(2)]]
        finally:
            await store.close()

    # Looked at once; again for 20, and once more because of having missed it; from 10 on what follows has a limit
    assert asyncio.run(claimed()) == [
        *[(1, 1), (2, 1), (3, 1), (4, 1)],
        *[(20, 2), (5, 3)],
        *[(6, 4), (7, 4)],
        *[(8, 4), (10, 4)],
    ]


def test_what_begins_meanwhile_counts_once_for_all_that_is_wanted_of_a_key(database: Any) -> None:
    """Wanted: two and one more of a key that waits in two priorities. Before it holds the queue, somebody else begins
    one: there is room for two."""
    rules = QueueRules(key_concurrency=3)

    async def claimed() -> list[int]:
        store = await database.open(payload_max=1_000)
        try:
            fence = await store.lease(SHARD, "a", None, 100_000)
            await store.commit(begin(), fence)

            async def offer(*tokens: int, priority: int) -> None:
                offers = [
                    OfferWork(TokenId(token), 1, "n", None, "q", "k", "w", 1, "root", priority=priority)
                    for token in tokens
                ]
                await store.commit(Batch([Commit(RUN, 1, [], offers, RunStatus.RUNNING)]), fence)

            await offer(1, 2, priority=5)
            await offer(3, 4, priority=6)
            claiming = Claiming("q", "w", 4, 60_000, rules, QueueLine())
            assert await store._connections.write_alone(claiming.free) is None
            await offer(5, priority=1)
            assert len(await store.claim("q", "other", 1, 60_000, rules)) == 1
            return [int(one.offer.token) for one in await store._connections.write(claiming.limited)]
        finally:
            await store.close()

    assert asyncio.run(claimed()) == [1, 2]


def test_buckets_that_nobody_has_used_for_a_week_are_swept_away(database: Any) -> None:
    """By who fills them, now and then; those in use stay as they are, and the queue's own."""
    rules = QueueRules(key_rate=Rate(2))
    age = "UPDATE meters SET touched = touched - 86400000 * $2::bigint WHERE key = $1"

    async def swept() -> tuple[list[str], list[str]]:
        store = await database.open(payload_max=1_000)
        connection = await reach(database.dsn)
        try:
            fence = await store.lease(SHARD, "a", None, 100_000)
            await store.commit(begin(), fence)
            offers = [
                OfferWork(TokenId(number), 1, "n", None, "q", key, "w", 1, "root")
                for number, key in enumerate(["idle", "late", "late", "used", "used", "used"], 1)
            ]
            await store.commit(Batch([Commit(RUN, 1, [], offers, RunStatus.RUNNING)]), fence)
            await store.claim("q", "w", 5, 60_000, rules)
            await connection.execute(age, "idle", 8)
            await connection.execute(age, "late", 6)
            await connection.execute("UPDATE meters SET touched = touched + 3600000 WHERE key = 'used'")  # never fills
            store._lines.sweep_at = 0.0
            left = await store.claim("q", "w", 5, 60_000, rules)
            keys = [key for (key,) in await connection.fetch("SELECT key FROM meters WHERE queue = 'q' ORDER BY key")]
            return [one.offer.key for one in left], keys
        finally:
            await connection.close()
            await store.close()

    assert asyncio.run(swept()) == ([], ["", "late", "used"])


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
            store._lines["q"].looked(FIRST, 0, [((1, "k"), 2)])
            store._lines["q"].missed()  # so that every claim looks
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
