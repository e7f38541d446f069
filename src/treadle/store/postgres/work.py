"""Queue work in a PostgreSQL database: rows that any number of workers claim at once.

Owns the verbs of `store.work` on a database. Promises their contract, that a claim costs the same however long the
lines are, and that no verb waits for a lock that a decision holds. Must not know a rule: limits come with the claim.
`claim` has the choice of a claim.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import asyncpg

from treadle.errors import StoreUnavailable
from treadle.model.ids import RunId, TokenId
from treadle.store.postgres.claim import Claiming
from treadle.store.postgres.claim_memory import Lines
from treadle.store.postgres.columns import columns
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.transactions import Connections
from treadle.store.seals import Tell
from treadle.store.work import NO_RULES, Claim, Claimed, ExpiredClaim, QueueRow, QueueRules

TRIES = 3
"""How often other claims may be quicker before a claim returns nothing; the worker claims again soon."""
SWEEP_S = 600.0
SWEPT_MAX = 10_000
"""Idle buckets deleted at a time: a claim waits for it."""


class PostgresWork:
    """The verbs of `store.work`, for a store with connections."""

    _connections: Connections
    tell: Tell

    async def claim(
        self, queue: str, worker: str, limit: int, ttl_ms: int, rules: QueueRules = NO_RULES
    ) -> list[Claimed]:
        if limit <= 0:
            return []
        if rules.has_rate:
            await self._forget_idle_buckets()
        claiming = Claiming(queue, worker, limit, ttl_ms, rules, self._lines[queue], tell=self.tell)
        for _ in range(TRIES):
            claimed = await self._connections.write_alone(claiming.free)
            if claimed is None:
                claimed = await self._connections.write(claiming.limited)
            if claimed or not claiming.has_lanes:
                return claimed
        return []

    async def renew(self, worker: str, claims: Sequence[Claim], ttl_ms: int) -> list[Claim]:
        if not claims:
            return []
        rows = await self._connections.write_alone(
            lambda connection: connection.fetch(SQL["renew_claims"], worker, *_named(claims), ttl_ms)
        )
        return [Claim(RunId(run), TokenId(token), number) for run, token, number in rows]

    async def give_back(self, claims: Sequence[Claim]) -> None:
        await self._change("give_back_claims", claims)

    async def give_back_strays(self, worker: str, held: Sequence[Claim]) -> None:
        await self._connections.write_alone(_executing(SQL["give_back_strays"], worker, *_named(held)))

    async def drop_offers(self, claims: Sequence[Claim]) -> None:
        await self._change("drop_offers", claims)

    async def expired_claims(self, shards: Sequence[int], limit: int = 1_000) -> list[ExpiredClaim]:
        rows = await self._connections.read(
            lambda connection: connection.fetch(SQL["expired_claims"], list(shards), limit)
        )
        return [
            ExpiredClaim(Claim(RunId(run), TokenId(token), number), attempt, recovery, worker)
            for run, token, number, attempt, recovery, worker in rows
        ]

    async def waiting_queues(self) -> list[str]:
        rows = await self._connections.read(lambda connection: connection.fetch(SQL["waiting_queues"]))
        return [row[0] for row in rows]

    async def queue_rows(self) -> list[QueueRow]:
        rows = await self._connections.read(lambda connection: connection.fetch(SQL["queue_rows"]))
        return [QueueRow(row[0], row[1], row[2], row[3], row[4], tuple(row[5])) for row in rows]

    async def _forget_idle_buckets(self) -> None:
        """Deletes idle buckets now and then: full ones, which are made again when they are needed."""
        if time.monotonic() >= self._lines.sweep_at:
            self._lines.sweep_at = time.monotonic() + SWEEP_S
            with suppress(StoreUnavailable):
                await self._connections.write_alone(_executing(SQL["forget_meters"], SWEPT_MAX))

    async def _change(self, statement: str, claims: Sequence[Claim]) -> None:
        if claims:
            await self._connections.write_alone(_executing(SQL[statement], *_named(claims)))

    @property
    def _lines(self) -> Lines:
        """The memory of the queues' lines. Losing it costs only speed, and the turn among very many keys."""
        lines: Lines = self.__dict__.setdefault("_work_lines", Lines())
        return lines


def _named(claims: Sequence[Claim]) -> list[Sequence[Any]]:
    return columns(((claim.run, claim.token, claim.number) for claim in claims), 3)


def _executing(statement: str, *arguments: Any) -> Callable[[asyncpg.Connection], Any]:
    return lambda connection: connection.execute(statement, *arguments)
