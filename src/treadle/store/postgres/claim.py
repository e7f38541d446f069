"""One claim of queue work: it finds the lanes, draws between them, and takes rows.

Owns the choice of a claim on a PostgreSQL database. Promises what `store.work` says of claims, at a cost that does not
grow with the backlog, and that it waits for no lock that a decision holds.

Theory of operation
    Ready work is in an index over (queue, priority, key, position). A claim finds the lanes by stepping through the
    index from lane to lane, never by counting rows. `fairness.share` decides how many rows of each lane begin. Rows at
    the heads of those lanes are taken with SKIP LOCKED. If other claims took them in between, it looks again. A process
    that has looked a moment ago takes rows without looking (`claim_memory`).

    Claims on a queue without limits share no lock. With limits they do: a claim that has chosen locks one row of
    `meters`, and takes rows only under that lock, as far as the limits allow: the counts are exact there. The choice
    before it is only a wish, based on limits as they were a moment ago. A key's limit may also come with the work
    itself (`concurrency` of a node): such a lane is treated like one of a queue with limits, and a claim that has not
    counted does not take such a row.

    A claim draws between LANES lanes. If more keys wait, the next claim continues after them: the view moves round the
    keys, in the memory of each process.

    Claimed rows stay in the index until they are vacuumed, which a long open transaction delays. Claims therefore begin
    where the line began a moment ago: rows before that are skipped inside the index.

Known limits: a claim looks at no more than PAGES times LANES keys that are all at their limits. Work under way under a
limit is counted, up to the limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random

import asyncpg
from msgspec import Struct
from msgspec.structs import astuple, replace

from treadle.model.effects import OfferWork
from treadle.model.ids import RunId
from treadle.store.fairness import Lane, LaneShare, share
from treadle.store.postgres.claim_memory import FIRST, LANES, Head, Position, QueueLine
from treadle.store.postgres.columns import columns, texts
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.values import effects_of
from treadle.store.seals import Tell, tell_log
from treadle.store.work import Claimed, QueueRules

PAGES = 32
ANY_PRIORITY = -(1 << 31)
RANDOM = Random()
"""Draws the turns: only fairness depends on it."""
NO_ROOMS: Mapping[str, int] = {}


class Wanted(Struct, frozen=True):
    """A wish for some rows of a lane, from a position on."""

    priority: int
    key: str
    count: int
    begin: int
    cap: int | None = None
    """Most rows of the key under way. None: not counted, and no row with a limit of its own is taken."""
    before: int = 0
    """Rows of the same key that are wanted before these."""
    ahead: int = 0
    """Rows of any key that are wanted before these."""


class Claiming:
    """One claim. Its parts may be run again, on another connection."""

    def __init__(
        self,
        queue: str,
        worker: str,
        limit: int,
        ttl_ms: int,
        rules: QueueRules,
        line: QueueLine,
        tell: Tell = tell_log,
    ) -> None:
        self._queue = queue
        self._worker = worker
        self._limit = limit
        self._ttl_ms = ttl_ms
        self._rules = rules
        self._line = line
        self._tell = tell
        self._wanted: list[Wanted] = []
        self.has_lanes = False
        """Whether there was work that might begin, when it looked."""

    async def free(self, connection: asyncpg.Connection) -> list[Claimed] | None:
        """Claims without a common lock; each statement is a transaction of its own. None: the work has limits, see
        `limited`."""
        if not self._rules.is_limited and (claimed := await self._unseen(connection)):
            return claimed
        page, turns, caps = await self._draw(connection)
        self._wanted = _wanted(page, turns, caps)
        self.has_lanes = bool(turns)
        if turns and (self._rules.is_limited or any(one.cap is not None for one in self._wanted)):
            return None
        if not caps and not self._rules.is_limited:
            heads = [Head(lane, row["position"]) for lane, row in zip(_lanes(page), page, strict=True)]
            self._line.keep(heads, self._limit)
        return await self._claimed(connection, await self._take(connection, self._wanted))

    async def limited(self, connection: asyncpg.Connection) -> list[Claimed]:
        """Claims what `free` wanted, as far as the limits allow, in one transaction, one claim of the queue after the
        other."""
        rules, wanted = self._rules, self._wanted
        held = await connection.fetchrow(SQL["hold_queue"], self._queue)
        if held is None:
            await connection.execute(SQL["make_meter"], self._queue)
            held = await connection.fetchrow(SQL["hold_queue"], self._queue)
        tokens = 0.0
        buckets: dict[str, float] = {}
        if rules.key_rate is not None:
            keys = texts({one.key for one in wanted})
            rows = await connection.fetch(SQL["read_meters"], self._queue, keys)
            found = {row["key"]: rules.key_rate.filled(row["tokens"], held["now"] - row["touched"]) for row in rows}
            buckets = {one.key: found.get(one.key, rules.key_rate.burst) for one in wanted}
            wanted = [_at_most(one, int(buckets[one.key]) - one.before) for one in wanted]
        if rules.rate is not None:
            tokens = rules.rate.filled(held["tokens"], held["now"] - held["touched"])
            wanted = [_at_most(one, int(tokens) - one.ahead) for one in wanted]
        claimed = await self._claimed(connection, await self._take(connection, wanted))
        await self._spend(connection, claimed, tokens, buckets, held["now"])
        return claimed

    async def _unseen(self, connection: asyncpg.Connection) -> list[Claimed]:
        """Claims without looking, if this process has looked a moment ago. Empty: look."""
        drawn = self._line.draw(self._limit, self._rules.weights, RANDOM)
        if drawn is None:
            return []
        view, turns = drawn
        wanted = [Wanted(turn.priority, turn.key, turn.count, view.begin[turn.key]) for turn in turns]
        rows = await self._take(connection, wanted, view.priority)
        for row in rows:
            view.took(row["key"], row["position"])
        if len(rows) < self._limit:
            self._line.missed()
        return await self._claimed(connection, rows)

    async def _draw(
        self, connection: asyncpg.Connection
    ) -> tuple[list[asyncpg.Record], list[LaneShare], dict[str, int]]:
        """The lanes, the drawn shares, and how many rows of each key may be under way, as of now."""
        page = await self._page(connection)
        limit = self._room_of_queue(page[0]) if page else 0
        for _ in range(PAGES):
            turns = share(_lanes(page, self._rooms(page)), limit, self._rules.weights, RANDOM)
            if turns or limit <= 0 or len(page) < LANES:
                break
            page = await self._look(connection, (page[-1]["priority"], page[-1]["key"]))
        return page, turns, self._caps(page)

    async def _page(self, connection: asyncpg.Connection) -> list[asyncpg.Record]:
        """The lanes to choose from: all of them, or the next group of the best priority."""
        cursor, self._line.cursor = self._line.cursor, FIRST
        page = await self._look(connection, cursor)
        best = page[0]["best"] if page else None
        page = [row for row in page if row["priority"] == best] if cursor != FIRST else page
        if cursor != FIRST and len(page) < LANES:  # once round all keys
            known = {(row["priority"], row["key"]) for row in page}
            first = await self._look(connection, FIRST)
            page += [row for row in first if (row["priority"], row["key"]) not in known]
        if len(page) >= LANES:
            page = page[:LANES]
            self._line.cursor = (page[-1]["priority"], page[-1]["key"])
        return page

    async def _look(self, connection: asyncpg.Connection, after: Position) -> list[asyncpg.Record]:
        """The heads of lanes, from where the lines began a moment ago. From the very beginning now and then, and if
        nothing is found: work that was given back keeps its place."""
        begin_at = self._line.begin_at()
        rows = await self._look_from(connection, after, begin_at)
        if not rows and begin_at:
            begin_at = 0
            rows = await self._look_from(connection, after, begin_at)
        self._line.looked(after, begin_at, [((row["priority"], row["key"]), row["position"]) for row in rows])
        return rows

    async def _look_from(self, connection: asyncpg.Connection, after: Position, begin_at: int) -> list[asyncpg.Record]:
        rules = self._rules
        limits = (rules.key_concurrency, rules.concurrency, rules.has_rate)
        rows: list[asyncpg.Record] = await connection.fetch(
            SQL["look_at_lanes"], self._queue, *after, LANES, self._limit, begin_at, *limits
        )
        return rows

    def _room_of_queue(self, row: asyncpg.Record) -> int:
        """How many rows of the queue may begin, counted up to the number that is needed."""
        rules, limit = self._rules, self._limit
        if rules.concurrency is not None:
            limit = min(limit, rules.concurrency - row["claimed"])
        if rules.rate is not None:
            passed_ms = row["now"] - (row["queue_touched"] or 0)
            limit = min(limit, int(rules.rate.filled(row["queue_tokens"], passed_ms)))
        return limit

    def _caps(self, page: list[asyncpg.Record]) -> dict[str, int]:
        """Key → how many of its rows may be under way, over all priorities. A key that is missing has no limit."""
        caps: dict[str, int] = {}
        for row in page:
            limits = (self._rules.key_concurrency, row["room"], caps.get(row["key"]))
            known = [limit for limit in limits if limit is not None]
            if known:
                caps[row["key"]] = min(known)
        return caps

    def _rooms(self, page: list[asyncpg.Record]) -> dict[str, int]:
        """How many rows of a key may begin."""
        caps, rate = self._caps(page), self._rules.key_rate
        rooms: dict[str, int] = {}
        for row in page:
            found = [caps[row["key"]] - row["at_work"]] if row["key"] in caps else []
            if rate is not None:
                found.append(int(rate.filled(row["tokens"], row["now"] - (row["touched"] or 0))))
            if found:
                rooms[row["key"]] = max(0, min([*found, rooms.get(row["key"], found[0])]))
        return rooms

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

    async def _take(
        self, connection: asyncpg.Connection, wanted: Sequence[Wanted], unless_before: int = ANY_PRIORITY
    ) -> list[asyncpg.Record]:
        """Takes rows in the order in which they should begin; none if work of a better priority waits."""
        wanted = [one for one in wanted if one.count]
        if not wanted:
            return []
        given = columns((astuple(one) for one in wanted), 7)
        better = (unless_before, self._line.begin_at())
        rows: list[asyncpg.Record] = await connection.fetch(
            SQL["take_work"], self._queue, self._worker, self._ttl_ms, *given, *better, self._rules.concurrency
        )
        rows.sort(key=lambda row: (row["priority"], row["position"]))
        return rows

    async def _claimed(self, connection: asyncpg.Connection, rows: Sequence[asyncpg.Record]) -> list[Claimed]:
        """The claimed offers. A damaged one is left out: its claim runs out, and the run offers it again from its
        history."""
        return [
            Claimed(RunId(row["run"]), offer, self._worker, row["number"])
            for row, offer in await effects_of(connection, rows, self._tell)
            if isinstance(offer, OfferWork)
        ]


def _lanes(page: Iterable[asyncpg.Record], rooms: Mapping[str, int] = NO_ROOMS) -> list[Lane]:
    return [Lane(row["priority"], row["key"], row["count"], rooms.get(row["key"])) for row in page]


def _wanted(page: Iterable[asyncpg.Record], turns: Sequence[LaneShare], caps: Mapping[str, int]) -> list[Wanted]:
    """The shares in order of priority, and in random order within one: if there is less room than expected, it must not
    always be the same keys that get nothing."""
    begin = {(row["priority"], row["key"]): row["position"] for row in page}
    before: Counter[str] = Counter()
    wanted: list[Wanted] = []
    for turn in sorted(turns, key=lambda turn: (turn.priority, RANDOM.random())):
        key, first = turn.key, begin[turn.priority, turn.key]
        wanted.append(
            Wanted(turn.priority, key, turn.count, first, caps.get(key), before=before[key], ahead=before.total())
        )
        before[key] += turn.count
    return wanted


def _at_most(wanted: Wanted, count: int) -> Wanted:
    return replace(wanted, count=max(0, min(wanted.count, count)))
