"""A store with queue work for the contract's tests, and its clock: nobody waits, time is made to pass."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import asyncpg

from tests.contract.making import OTHER, RUN, Spoken, begin
from treadle.model.effects import Effect, OfferWork, Slot, WithdrawWork
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.store.memory_work import QueueMemoryStore
from treadle.store.port import Batch, Commit, Fence
from treadle.store.rows import SHARD
from treadle.store.sqlite import SqliteStore
from treadle.store.work import Claimed, QueueRules


class Shop(Spoken):
    """A store with queue work, and its clock."""

    fence: Fence
    seqs: dict[RunId, int]

    def begin(self) -> None:
        self.fence = self.lease(SHARD, "a", None, 100_000)
        self.commit(Batch([*begin().commits, *begin(OTHER).commits]), self.fence)
        self.seqs = {}
        self.last = 0

    def decide(self, *effects: Effect, run: RunId = RUN, status: RunStatus = RunStatus.RUNNING) -> None:
        self.commit(Batch([Commit(run, 1, [], effects, status)]), self.fence)

    def offer(
        self, *keys: str, queue: str = "q", priority: int = 1, run: RunId = RUN, limit: int | None = None
    ) -> None:
        """One offer for each key, in this order."""
        self.decide(*(self.made(key, queue, priority, limit) for key in keys), run=run)

    def made(self, key: str, queue: str = "q", priority: int = 1, limit: int | None = None) -> OfferWork:
        self.last += 1
        slot = Slot(key, limit) if limit is not None else None
        token = TokenId(self.last)
        return OfferWork(token, 1, "n", {"of": key}, queue, key, "w", 1, "root", priority=priority, slot=slot)

    def take(
        self, limit: int = 1, worker: str = "ann", ttl_ms: int = 60_000, queue: str = "q", **rules: Any
    ) -> list[Any]:
        claimed: list[Claimed] = self.claim(queue, worker, limit, ttl_ms, QueueRules(**rules))
        return claimed

    def taken(self, limit: int = 1, **given: Any) -> list[str]:
        """Keys of what was claimed."""
        return [claimed.offer.key for claimed in self.take(limit, **given)]

    def finish(self, *claimed: Claimed) -> None:
        for one in claimed:
            self.decide(WithdrawWork(one.offer.token), run=one.run)

    def pass_time(self, ms: int) -> None:
        raise NotImplementedError


class MemoryShop(Shop):
    def __init__(self, runner: asyncio.Runner) -> None:
        self.now = 1_000_000
        super().__init__(QueueMemoryStore(now=lambda: self.now), runner)

    def pass_time(self, ms: int) -> None:
        self.now += ms


class SqliteShop(Shop):
    def __init__(self, path: Path, runner: asyncio.Runner) -> None:
        self.now = 1_000_000
        store = runner.run(SqliteStore.open(path, payload_max=200))
        store.now = lambda: self.now
        super().__init__(store, runner)

    def pass_time(self, ms: int) -> None:
        self.now += ms


class PostgresShop(Shop):
    dsn: str

    def pass_time(self, ms: int) -> None:
        """The server's clock is nobody's to set: everything it has noted becomes older."""

        async def age() -> None:
            connection = await asyncpg.connect(self.dsn)
            await connection.execute(f"UPDATE work SET until = until - {ms}, offered = offered - {ms}")
            await connection.execute(f"UPDATE meters SET touched = touched - {ms}")
            await connection.close()

        self._runner.run(age())
