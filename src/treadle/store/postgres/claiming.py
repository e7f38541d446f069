"""One claim of queue work: which lanes there are, whose turn it is, whose rows are taken.

Owns how a claim chooses on a PostgreSQL database. Promises what `store.work` says of claims, at a cost that does not
grow with the backlog, and that it waits for no lock that a decision holds.

Theory of operation
    What is ready is an index over (queue, priority, key, position). Which lanes there are is found by stepping through
    it from lane to lane, never by counting rows; `fairness.share` says how much of which lane begins; rows at the heads
    of those lanes are taken with SKIP LOCKED. Between the two, others may take them: then it looks again.

    A queue without limits has no lock in common. One with limits has: claims follow each other on one row of `meters`,
    and what is counted behind that lock is exact. A key's limit may also come with the work itself (`concurrency` of a
    node): such a lane is treated like a queue with limits.

    A claim draws between LANES lanes. Where more keys wait, the next claim goes on behind them: the view moves along
    the keys like the hand of a clock, in the memory of each process.

    Rows that were claimed stay in the index until they are vacuumed, which a transaction that somebody keeps open puts
    off. Claims therefore begin where the line began a moment ago: what lies before is passed over inside the index.

Known limits: a claim looks at no more than PAGES times LANES keys that are all at their limits.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from random import Random

import asyncpg

from treadle.model.effects import OfferWork
from treadle.model.ids import RunId
from treadle.store.fairness import Lane, Turn, share
from treadle.store.postgres.columns import columns
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.reading import Values
from treadle.store.work import Claimed, QueueRules

LANES = 16
"""As many keys as a claim draws between: about a third of a millisecond of looking."""
PAGES = 32
BELIEVED_S = 2.0
"""How long the beginning of a line is believed: so long may work that was given back wait behind newer work."""
FIRST = (-(1 << 31), "")
RANDOM = Random()
"""Whose turn it is: nothing but fairness hangs on it."""

Position = tuple[int, str]


class Marks:
    """Where the lines of queues began a moment ago."""

    def __init__(self) -> None:
        self._positions: dict[str, tuple[int, float]] = {}

    def of(self, queue: str) -> int:
        position, until = self._positions.get(queue, (0, 0.0))
        return position if time.monotonic() < until else 0

    def note(self, queue: str, position: int) -> None:
        self._positions[queue] = (position, time.monotonic() + BELIEVED_S)


class Claiming:
    """One claim. May be run again in another transaction."""

    def __init__(
        self,
        queue: str,
        worker: str,
        limit: int,
        ttl_ms: int,
        rules: QueueRules,
        cursors: dict[str, Position],
        marks: Marks,
    ) -> None:
        self._queue = queue
        self._worker = worker
        self._limit = limit
        self._ttl_ms = ttl_ms
        self._rules = rules
        self._cursors = cursors
        self._marks = marks
        self._begin_at = 0
        """Positions before it are not looked at."""
        self.has_lanes = False
        """Whether there was something to take, when it looked."""

    async def unlimited(self, connection: asyncpg.Connection) -> list[Claimed] | None:
        """Each statement is a transaction of its own. None: some of the work has a limit."""
        page = await self._page(connection, counted=False)
        self.has_lanes = bool(page)
        if any(row["room"] is not None for row in page):
            return None
        turns = share(_lanes(page), self._limit, self._rules.weights, RANDOM)
        return await self._take(connection, turns)

    async def may_claim(self, connection: asyncpg.Connection) -> bool:
        """Who finds nothing to claim does not stand in line for it."""
        may: bool = await connection.fetchval(SQL["may_claim"], self._queue, self._rules.concurrency)
        return may

    async def limited(self, connection: asyncpg.Connection) -> list[Claimed]:
        """In one transaction, behind everybody else who claims from this queue."""
        rules = self._rules
        held = await connection.fetchrow(SQL["hold_queue"], self._queue)
        if held is None:
            await connection.execute(SQL["make_meter"], self._queue)
            held = await connection.fetchrow(SQL["hold_queue"], self._queue)
        limit, tokens = self._limit, 0.0
        if rules.concurrency is not None:
            taken = await connection.fetchval(SQL["count_claimed"], self._queue, rules.concurrency)
            limit = min(limit, rules.concurrency - taken)
        if rules.rate is not None:
            tokens = rules.rate.filled(held["tokens"], held["now"] - held["touched"])
            limit = min(limit, int(tokens))
        if limit <= 0:
            return []
        page = await self._page(connection, counted=True)
        for _ in range(PAGES):
            buckets = self._buckets(page, held["now"])
            rooms = {row["key"]: self._room(row, buckets.get(row["key"])) for row in page}
            turns = share(_lanes(page, rooms), limit, rules.weights, RANDOM)
            if turns or len(page) < LANES:
                break
            page = await self._look(connection, (page[-1]["priority"], page[-1]["key"]), counted=True)
        claimed = await self._take(connection, turns)
        await self._spend(connection, claimed, tokens, buckets, held["now"])
        return claimed

    async def _page(self, connection: asyncpg.Connection, counted: bool) -> list[asyncpg.Record]:
        """The lanes to choose from: all of them, or the next group of the best priority."""
        cursor = self._cursors.pop(self._queue, FIRST)
        page = await self._look(connection, cursor, counted)
        best = page[0]["best"] if page else None
        page = [row for row in page if row["priority"] == best] if cursor != FIRST else page
        if cursor != FIRST and len(page) < LANES:  # once round
            known = {(row["priority"], row["key"]) for row in page}
            first = await self._look(connection, FIRST, counted)
            page += [row for row in first if (row["priority"], row["key"]) not in known]
        if len(page) >= LANES:
            page = page[:LANES]
            self._cursors[self._queue] = (page[-1]["priority"], page[-1]["key"])
        return page

    async def _look(self, connection: asyncpg.Connection, after: Position, counted: bool) -> list[asyncpg.Record]:
        """From where the lines began a moment ago; from the very beginning now and then, and where nothing is found:
        what was given back keeps its place."""
        self._begin_at = self._marks.of(self._queue)
        rows = await self._look_from(connection, after, counted)
        if not rows and self._begin_at:
            self._begin_at = 0
            rows = await self._look_from(connection, after, counted)
        if not self._begin_at and after == FIRST:
            self._marks.note(self._queue, min((row["position"] for row in rows), default=0) if len(rows) < LANES else 0)
        return rows

    async def _look_from(self, connection: asyncpg.Connection, after: Position, counted: bool) -> list[asyncpg.Record]:
        rates = self._rules.key_rate is not None
        rows: list[asyncpg.Record] = await connection.fetch(
            SQL["look_at_lanes"], self._queue, *after, LANES, self._limit, counted, rates, self._begin_at
        )
        return rows

    def _room(self, row: asyncpg.Record, tokens: float | None) -> int | None:
        limits = [limit for limit in (self._rules.key_concurrency, row["room"]) if limit is not None]
        rooms = [limit - row["at_work"] for limit in limits]
        if tokens is not None:
            rooms.append(int(tokens))
        return max(0, min(rooms)) if rooms else None

    def _buckets(self, page: list[asyncpg.Record], now: int) -> dict[str, float]:
        rate = self._rules.key_rate
        if rate is None:
            return {}
        return {
            row["key"]: rate.filled(row["tokens"], now - row["touched"] if row["touched"] is not None else 0)
            for row in page
        }

    async def _spend(
        self,
        connection: asyncpg.Connection,
        claimed: list[Claimed],
        tokens: float,
        buckets: dict[str, float],
        now: int,
    ) -> None:
        left: dict[str, float] = {}
        if self._rules.rate is not None:
            left[""] = tokens - len(claimed)
        for one in claimed:
            key = one.offer.key
            if key in buckets:
                left[key] = left.get(key, buckets[key]) - 1
        if left and claimed:
            await connection.execute(SQL["write_meters"], self._queue, *columns(left.items(), 2), now)

    async def _take(self, connection: asyncpg.Connection, turns: list[Turn]) -> list[Claimed]:
        if not turns:
            return []
        wanted = columns(((turn.priority, turn.key, turn.count) for turn in turns), 3)
        rows = await connection.fetch(
            SQL["take_work"], self._queue, self._worker, self._ttl_ms, *wanted, self._begin_at
        )
        rows.sort(key=lambda row: (row["priority"], row["position"]))
        runs = [RunId(row["run"]) for row in rows]
        values = Values(connection)
        offers = await values.decode(values.effect, runs, [row["effect"] for row in rows])
        return [
            Claimed(run, offer, self._worker, row["number"])
            for row, run, offer in zip(rows, runs, offers, strict=True)
            if isinstance(offer, OfferWork)
        ]


def _lanes(page: Iterable[asyncpg.Record], rooms: dict[str, int | None] | None = None) -> list[Lane]:
    rooms = rooms or {}
    return [Lane(row["priority"], row["key"], row["count"], rooms.get(row["key"])) for row in page]
