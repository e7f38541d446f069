"""One claim of queue work in a file: it finds the lanes, draws between them, and takes rows.

Owns the choice of a claim. Promises what `store.work` says of claims, at a cost that does not grow with the backlog.
Runs inside one transaction of the writer, so no other claim and no decision comes between its look and its taking: all
counts are exact. Must not know threads, nor a clock.

A claim steps through the index from lane to lane and never counts rows beyond the number it needs. It draws between
LANES lanes; if more keys wait, the next claim continues behind them (`cursor`), in the memory of each process.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import apsw
from msgspec import Struct

from treadle.model.effects import OfferWork
from treadle.model.ids import RunId
from treadle.store.fairness import Lane, Rate, share
from treadle.store.seals import Tell
from treadle.store.sqlite.queries import SQL
from treadle.store.sqlite.reading import Rows, SqliteValues, effect_of
from treadle.store.work import Claimed, QueueRules

LANES = 64
"""Keys between which a claim draws: a look at one takes about 10 µs."""
PAGES = 8
"""How many times LANES keys are looked at, if all of them are at their limits."""
FIRST = (-(1 << 62), "")
"""Before every lane."""

Position = tuple[int, str]


class ClaimTerms(Struct, frozen=True):
    """What a worker asks for."""

    queue: str
    worker: str
    limit: int
    now: int
    until: int
    rules: QueueRules


class FileClaim:
    """One claim on one connection. See the module's docstring."""

    def __init__(self, connection: apsw.Connection, terms: ClaimTerms, random: Random, cursor: Position) -> None:
        self._connection = connection
        self._terms = terms
        self._random = random
        self.cursor = cursor
        """Where the next claim of the queue continues; FIRST: at the beginning."""
        self._at_work: Counter[str] = Counter()
        self._counted: set[str] = set()
        self._buckets: dict[str, float] = {}

    def take(self, values: SqliteValues, tell: Tell) -> list[Claimed]:
        """Claims rows, and spends the starts of their buckets."""
        terms, claimed = self._terms, 0
        taken: list[Claimed] = []
        page, limit = self._page(), self._room_of_queue()
        for _ in range(PAGES):
            lanes = [self._lane(*found) for found in page]
            turns = share(lanes, limit, terms.rules.weights, self._random)
            if turns or limit <= 0 or len(page) < LANES:
                break
            page = self._walk(page[-1][:2])
        for turn in turns:
            rows = self._take_lane(turn.priority, turn.key, turn.count)
            claimed += len(rows)
            if terms.rules.key_rate is not None:
                self._buckets[turn.key] -= len(rows)
            for position, run, number, _room, packed in rows:
                offer = effect_of(self._connection, values, position, RunId(run), packed, tell)
                if isinstance(offer, OfferWork):  # else its claim runs out, and the run offers it again
                    taken.append(Claimed(RunId(run), offer, terms.worker, number + 1))
        if claimed:
            self._spend(claimed)
        return taken

    def _page(self) -> list[tuple[int, str, int | None]]:
        """The lanes to choose from: all of them, or the next group of the best priority."""
        page = self._walk(FIRST)
        if len(page) < LANES:
            self.cursor = FIRST
            return page
        best = page[0][0]
        if self.cursor != FIRST and self.cursor[0] == best:
            behind = [lane for lane in self._walk(self.cursor) if lane[0] == best]
            known = {lane[:2] for lane in behind}
            page = [*behind, *(lane for lane in page if lane[:2] not in known)][:LANES]  # once round all keys
        self.cursor = page[-1][:2]
        return page

    def _walk(self, after: Position) -> list[tuple[int, str, int | None]]:
        """Up to LANES lanes behind a position: priority, key and the limit that the first offer brings."""
        lanes: list[tuple[int, str, int | None]] = []
        while len(lanes) < LANES:
            found = self._connection.execute(SQL["next_lane"], (self._terms.queue, *after)).fetchone()
            if found is None:
                break
            lanes.append(found)
            after = found[:2]
        return lanes

    def _lane(self, priority: int, key: str, room: int | None) -> Lane:
        terms, rooms = self._terms, []
        ready = self._connection.execute(SQL["count_ready"], (terms.queue, priority, key, terms.limit)).get
        caps = [cap for cap in (terms.rules.key_concurrency, room) if cap is not None]
        if caps:
            rooms.append(min(caps) - self._count(key))
        if terms.rules.key_rate is not None:
            rooms.append(int(self._bucket(key, terms.rules.key_rate)))
        return Lane(priority, key, ready, max(0, min(rooms)) if rooms else None)

    def _room_of_queue(self) -> int:
        terms, room = self._terms, self._terms.limit
        if terms.rules.concurrency is not None:
            given = (terms.queue, terms.rules.concurrency)
            room = min(room, terms.rules.concurrency - self._connection.execute(SQL["count_claimed"], given).get)
        if terms.rules.rate is not None:
            room = min(room, int(self._bucket("", terms.rules.rate)))
        return max(0, room)

    def _take_lane(self, priority: int, key: str, count: int) -> Rows:
        """Rows at the head of a lane. A row that brings a limit is taken only within it."""
        terms = self._terms
        rows: Rows = self._connection.execute(SQL["ready_of_lane"], (terms.queue, priority, key, count)).fetchall()
        taken = []
        for row in rows:
            if row[3] is not None and self._count(key) >= row[3]:
                break
            self._connection.execute(SQL["take_work"], (terms.worker, terms.until, row[0]))
            self._at_work[key] += 1
            taken.append(row)
        return taken

    def _count(self, key: str) -> int:
        """Claimed offers of a key. What this claim took before the count is among them."""
        if key not in self._counted:
            self._counted.add(key)
            given = (self._terms.queue, key)
            self._at_work[key] = self._connection.execute(SQL["count_claimed_of_key"], given).get
        return self._at_work[key]

    def _bucket(self, key: str, rate: Rate) -> float:
        if key not in self._buckets:
            row = self._connection.execute(SQL["read_meter"], (self._terms.queue, key)).fetchone()
            tokens, touched = row or (None, 0)
            self._buckets[key] = rate.filled(tokens, self._terms.now - touched)
        return self._buckets[key]

    def _spend(self, claimed: int) -> None:
        if "" in self._buckets:
            self._buckets[""] -= claimed
        terms = self._terms
        rows = [(terms.queue, key, tokens, terms.now) for key, tokens in self._buckets.items()]
        if rows:
            self._connection.executemany(SQL["write_meter"], rows)
