"""Queue work in a SQLite file: rows that workers claim, in the engine's process and in others on the machine.

Owns the verbs of `store.work` on a file, and the rows that a commit writes for them. Promises their contract, and that
a claim is durable before its worker has it. Must not know a rule: limits come with the claim. `claim` has the choice.

Every verb that writes is one short transaction. A worker in another process writes claims directly into the file, as it
writes requests: SQLite lets one process after the other write, and no verb holds the lock while it waits for anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

import apsw
import msgspec

from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.store.planning import BatchPlan
from treadle.store.rows import SHARD
from treadle.store.seals import Tell
from treadle.store.sqlite.claim import FIRST, ClaimTerms, FileClaim, Position
from treadle.store.sqlite.queries import SQL
from treadle.store.sqlite.reading import Rows, SqliteValues
from treadle.store.sqlite.threads import Writer
from treadle.store.work import NO_RULES, Claim, Claimed, ExpiredClaim, QueueRow, QueueRules

SWEEP_MS = 600_000
IDLE_MS = 7 * 24 * 3_600_000
"""A bucket that was not used for a week is deleted; it would be full."""

T = TypeVar("T")


def now_ms() -> int:
    """The clock of the machine, which all processes on a file share."""
    return time.time_ns() // 1_000_000


class SqliteWork:
    """The verbs of `store.work`, for a store with a writer and a reader."""

    tell: Tell
    now: Callable[[], int] = staticmethod(now_ms)
    """The store's clock; a simulated world sets its own."""
    random: Random = Random()
    """Draws the turns: only fairness depends on it."""

    async def claim(
        self, queue: str, worker: str, limit: int, ttl_ms: int, rules: QueueRules = NO_RULES
    ) -> list[Claimed]:
        if limit <= 0:
            return []
        now = self.now()
        terms = ClaimTerms(queue, worker, limit, now, now + ttl_ms, rules)

        def work(connection: apsw.Connection) -> list[Claimed]:
            if rules.has_rate:
                self._forget_idle_buckets(connection, now)
            claim = FileClaim(connection, terms, self.random, self._cursors.get(queue, FIRST))
            taken = claim.take(self._values_of(connection), self.tell)
            self._cursors[queue] = claim.cursor
            return taken

        return await self._writes.at_once(work)

    async def renew(self, worker: str, claims: Sequence[Claim], ttl_ms: int) -> list[Claim]:
        if not claims:
            return []
        until = self.now() + ttl_ms

        def work(connection: apsw.Connection) -> list[Claim]:
            lost = []
            for claim in claims:
                connection.execute(SQL["renew_claim"], (until, *_named(claim), worker))
                if not connection.changes():
                    lost.append(claim)
            return lost

        return await self._writes.at_once(work)

    async def bury(self, owner: str) -> None:
        """The claims of a worker that is known to be dead have run out."""
        await self._writes.do(lambda connection: connection.execute(SQL["end_claims"], (owner,)))

    async def give_back(self, claims: Sequence[Claim]) -> None:
        await self._change("give_back_claim", claims)

    async def give_back_strays(self, worker: str, held: Sequence[Claim]) -> None:
        known = set(held)

        def work(connection: apsw.Connection) -> None:
            rows: Rows = connection.execute(SQL["claims_of_worker"], (worker,)).fetchall()
            claims = [Claim(RunId(run), TokenId(token), number) for run, token, number in rows]
            connection.executemany(SQL["give_back_claim"], [_named(claim) for claim in claims if claim not in known])

        await self._writes.do(work)

    async def drop_offers(self, claims: Sequence[Claim]) -> None:
        await self._change("drop_offer", claims)

    async def expired_claims(self, shards: Sequence[int], limit: int = 1_000) -> list[ExpiredClaim]:
        if SHARD not in shards:
            return []
        rows: Rows = await self._read(
            lambda connection: connection.execute(SQL["expired_claims"], (self.now(), limit)).fetchall()
        )
        return [
            ExpiredClaim(Claim(RunId(run), TokenId(token), number), attempt, recovery, worker)
            for run, token, number, attempt, recovery, worker in rows
        ]

    async def waiting_queues(self) -> list[str]:
        return await self._read(_waiting_queues)

    async def queue_rows(self) -> list[QueueRow]:
        now = self.now()
        rows: Rows = await self._read(lambda connection: connection.execute(SQL["queue_rows"]).fetchall())
        return [
            QueueRow(
                queue, waiting, claimed, held, max(0, now - oldest) if oldest is not None else 0, _workers(workers)
            )
            for queue, waiting, claimed, held, oldest, workers in rows
        ]

    async def _change(self, statement: str, claims: Sequence[Claim]) -> None:
        if claims:
            rows = [_named(claim) for claim in claims]
            await self._writes.do(lambda connection: _execute_many(connection, SQL[statement], rows))

    def _forget_idle_buckets(self, connection: apsw.Connection, now: int) -> None:
        if now >= self.__dict__.get("_sweep_at", 0):
            self.__dict__["_sweep_at"] = now + SWEEP_MS
            connection.execute(SQL["forget_meters"], (now - IDLE_MS,))

    def _values_of(self, connection: apsw.Connection) -> SqliteValues:
        """The decoders of the connection that writes, made once."""
        values: SqliteValues | None = self.__dict__.get("_work_values")
        if values is None:
            values = self.__dict__["_work_values"] = SqliteValues(connection)
        return values

    @property
    def _cursors(self) -> dict[str, Position]:
        """Queue → where the next claim continues. Losing it costs only the turn among very many keys."""
        cursors: dict[str, Position] = self.__dict__.setdefault("_work_cursors", {})
        return cursors

    @property
    def _writes(self) -> Writer:
        raise NotImplementedError

    async def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        raise NotImplementedError


def write_work(connection: apsw.Connection, plan: BatchPlan, now: int) -> None:
    """Writes the offers of a batch, in its transaction. Those of paused runs are held from the beginning."""
    gone = [key for key, offer in plan.work.items() if offer is None]
    if gone:
        connection.executemany(SQL["withdraw_work"], gone)
    if plan.offers:
        rows = [
            (
                run,
                offer.token,
                offer.queue,
                offer.priority,
                offer.key,
                now,
                offer.attempt,
                offer.recovery,
                offer.slot.limit if offer.slot is not None else None,
                packed,
                int(plan.runs[run].commit.status is RunStatus.PAUSED),
            )
            for run, offer, packed in plan.offers
        ]
        connection.executemany(SQL["offer_work"], rows)
    if plan.held:
        connection.executemany(SQL["hold_work"], [(int(held), run) for run, held in plan.held.items()])


def _named(claim: Claim) -> tuple[str, int, int]:
    return (claim.run, claim.token, claim.number)


def _execute_many(connection: apsw.Connection, statement: str, rows: Sequence[tuple[str, int, int]]) -> None:
    connection.executemany(statement, rows)


def _waiting_queues(connection: apsw.Connection) -> list[str]:
    """From queue to queue in steps of one look into the index."""
    queues: list[str] = []
    row = connection.execute(SQL["first_waiting_queue"]).fetchone()
    while row is not None:
        queues.append(row[0])
        row = connection.execute(SQL["next_waiting_queue"], row).fetchone()
    return queues


def _workers(packed: str) -> tuple[str, ...]:
    return tuple(sorted(worker for worker in msgspec.json.decode(packed) if worker is not None))
