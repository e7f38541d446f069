"""The contract of queue work: whose turn it is, and how much may begin. For every store that has it."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.contract.making import RUN, begin
from tests.contract.shop import Shop
from treadle.model.effects import OfferWork
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.store.fairness import Rate
from treadle.store.port import Batch, Commit
from treadle.store.rows import SHARD
from treadle.store.work import QueueRules


def test_smaller_priorities_go_first(shop: Shop) -> None:
    shop.offer("late", priority=5)
    shop.offer("soon", "soon", priority=1)
    shop.offer("first", priority=-1)
    assert shop.taken(2) == ["first", "soon"]
    assert shop.taken(2) == ["soon", "late"]


def test_within_a_key_what_was_offered_first_goes_first(shop: Shop) -> None:
    shop.offer("k", "k", "k")
    assert [shop.take()[0].offer.token for _ in range(3)] == [1, 2, 3]


def test_a_long_line_does_not_starve_a_short_one(shop: Shop) -> None:
    """One after the other: each is drawn, and 60 draws at even odds find three in all but one case of 10^15."""
    shop.offer(*["long"] * 200)
    shop.offer(*["short"] * 3)
    assert Counter(key for _ in range(60) for key in shop.taken())["short"] == 3


def test_within_a_claim_keys_share_alike(shop: Shop) -> None:
    shop.offer(*["long"] * 200)
    shop.offer(*["short"] * 3)
    assert Counter(shop.taken(6)) == {"long": 3, "short": 3}


def test_heavier_keys_get_more_turns(shop: Shop) -> None:
    shop.offer(*["a"] * 150, *["b"] * 150)
    assert Counter(shop.taken(20, weights={"a": 3.0})) == {"a": 15, "b": 5}
    one_by_one = Counter(key for _ in range(100) for key in shop.taken(weights={"a": 3.0}))
    assert 45 < one_by_one["a"] < 100  # 75 expected; seven times the deviation


def test_a_queue_has_at_most_so_many_at_work(shop: Shop) -> None:
    shop.offer(*["k"] * 5)
    claimed = shop.take(10, concurrency=3)
    assert len(claimed) == 3
    assert shop.take(worker="bob", concurrency=3) == []
    shop.finish(claimed[0])
    assert len(shop.take(10, worker="bob", concurrency=3)) == 1


def test_a_claim_that_ran_out_still_counts(shop: Shop) -> None:
    shop.offer("k", "k")
    shop.take(ttl_ms=10, concurrency=1)
    shop.pass_time(1_000)
    assert shop.taken(concurrency=1) == []


def test_a_key_has_at_most_so_many_at_work_and_holds_nobody_up(shop: Shop) -> None:
    shop.offer(*["a"] * 5, *["b"] * 5)
    shop.offer("c", priority=9)
    assert Counter(shop.taken(10, key_concurrency=2)) == {"a": 2, "b": 2, "c": 1}
    assert shop.taken(10, key_concurrency=2) == []


def test_a_key_is_limited_over_all_priorities(shop: Shop) -> None:
    shop.offer("a", "a", priority=1)
    shop.offer("a", "a", priority=2)
    assert shop.taken(10, key_concurrency=3) == ["a"] * 3
    assert shop.taken(10, key_concurrency=3) == []


def test_work_may_bring_its_own_limit(shop: Shop) -> None:
    shop.offer(*["slot"] * 4, limit=2)
    shop.offer("free")
    assert Counter(shop.taken(10)) == {"slot": 2, "free": 1}
    assert shop.taken(10) == []


@pytest.mark.parametrize("rules", [{}, {"concurrency": 9}], ids=["free queue", "limited queue"])
def test_a_limit_counts_also_behind_work_of_its_key_that_brings_none(shop: Shop, rules: dict[str, int]) -> None:
    shop.offer("k")
    shop.offer(*["k"] * 3, limit=1)
    assert shop.taken(10, **rules) == ["k"]
    assert shop.taken(10, **rules) == []


def test_a_rate_is_a_bucket_of_one_second(shop: Shop) -> None:
    shop.offer(*["k"] * 20)
    rate = Rate(4)
    assert len(shop.taken(10, rate=rate)) == 4
    assert shop.taken(10, rate=rate) == []
    shop.pass_time(500)
    assert len(shop.taken(10, rate=rate)) in (2, 3)  # a real clock goes on meanwhile
    shop.pass_time(60_000)
    assert len(shop.taken(10, rate=rate)) == 4


def test_a_slow_rate_still_lets_one_begin(shop: Shop) -> None:
    shop.offer(*["k"] * 3)
    assert len(shop.taken(10, rate=Rate(0.1))) == 1
    shop.pass_time(5_000)
    assert shop.taken(10, rate=Rate(0.1)) == []
    shop.pass_time(5_000)
    assert len(shop.taken(10, rate=Rate(0.1))) == 1


def test_every_key_has_a_bucket_of_its_own(shop: Shop) -> None:
    shop.offer(*["a"] * 5, *["b"] * 5)
    assert Counter(shop.taken(10, key_rate=Rate(2))) == {"a": 2, "b": 2}
    assert shop.taken(10, key_rate=Rate(2)) == []
    shop.pass_time(1_000)
    assert Counter(shop.taken(3, key_rate=Rate(2))) in ({"a": 2, "b": 1}, {"a": 1, "b": 2})


def test_how_queues_are_doing(shop: Shop) -> None:
    shop.offer("k", "k", queue="cpu")
    shop.offer("k", queue="gpu")
    shop.pass_time(5_000)
    shop.take(queue="cpu", worker="ann")
    cpu, gpu = shop.queue_rows()
    assert (cpu.queue, cpu.waiting, cpu.claimed, cpu.workers) == ("cpu", 1, 1, ("ann",))
    assert (gpu.queue, gpu.waiting, gpu.claimed, gpu.workers) == ("gpu", 1, 0, ())
    assert 5_000 <= gpu.oldest_ms < 60_000


@pytest.mark.parametrize("limited", [False, True])
def test_64_who_claim_at_once_never_get_the_same_and_leave_nothing(database: Any, limited: bool) -> None:
    rows, claimers = 2_000, 64
    rules = QueueRules(concurrency=rows) if limited else QueueRules()

    async def crowd() -> list[tuple[RunId, TokenId]]:
        store = await database.open(payload_max=1_000)
        try:
            fence = await store.lease(SHARD, "a", None, 100_000)
            await store.commit(begin(), fence)
            offers = [
                OfferWork(TokenId(number + 1), 1, "n", None, "q", f"k{number % 7}", "w", 1, "root")
                for number in range(rows)
            ]
            await store.commit(Batch([Commit(RUN, 1, [], offers, RunStatus.RUNNING)]), fence)
            got: list[tuple[RunId, TokenId]] = []

            async def claim(worker: str) -> None:
                nothing = 0
                while nothing < 3:
                    claimed = await store.claim("q", worker, 5, 60_000, rules)
                    got.extend((one.run, one.offer.token) for one in claimed)
                    nothing = 0 if claimed else nothing + 1

            await asyncio.gather(*(claim(f"w{number}") for number in range(claimers)))
            return got
        finally:
            await store.close()

    got = asyncio.run(crowd())
    assert len(got) == len(set(got)) == rows


@pytest.mark.parametrize(
    ("rules", "begin_in_all", "of_a_key"),
    [
        (QueueRules(concurrency=11, key_concurrency=2), 11, 2),
        (QueueRules(key_concurrency=3), 21, 3),
        (QueueRules(rate=Rate(0.001)), 1, 1),
        (QueueRules(key_rate=Rate(0.001)), 7, 1),
        (QueueRules(concurrency=5, key_rate=Rate(0.001)), 5, 1),
    ],
    ids=str,
)
def test_limits_hold_exactly_while_32_claim_at_once(
    database: Any, rules: QueueRules, begin_in_all: int, of_a_key: int
) -> None:
    """Several at a time, of keys that wait in two priorities: nobody sees what the others are about to take."""

    async def crowd() -> list[str]:
        store = await database.open(payload_max=1_000)
        try:
            fence = await store.lease(SHARD, "a", None, 100_000)
            await store.commit(begin(), fence)
            offers = [
                OfferWork(TokenId(n + 1), 1, "n", None, "q", f"k{n % 7}", "w", 1, "root", priority=n // 35)
                for n in range(70)
            ]
            await store.commit(Batch([Commit(RUN, 1, [], offers, RunStatus.RUNNING)]), fence)
            got: list[str] = []

            async def claim(worker: str) -> None:
                for _ in range(3):
                    got.extend(one.offer.key for one in await store.claim("q", worker, 4, 60_000, rules))

            await asyncio.gather(*(claim(f"w{number}") for number in range(32)))
            return got
        finally:
            await store.close()

    got = Counter(asyncio.run(crowd()))
    assert (got.total(), max(got.values())) == (begin_in_all, of_a_key)
