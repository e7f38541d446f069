"""A SQLite store that lies about its commits: some did not happen, some happened and nobody hears of it; and that
cannot be read now and then.

Owns the faults; they begin and end with `armed`. The engine under test has to notice by itself, in its own process.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from treadle.errors import StoreUnavailable
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.store.port import Batch, Fence, InboxRequest, OutboxRow, RunQuery, RunRow, TimerRow
from treadle.store.sqlite import SqliteStore


class FaultyStore(SqliteStore):
    """See the module's docstring. A rate is the probability of one fault per call."""

    random: random.Random = random.Random(0)
    commit_rate = 0.0
    read_rate = 0.0
    armed = False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.faults: Counter[str] = Counter()

    async def commit(self, batch: Batch, fence: Fence) -> list[OutboxRow]:  # type: ignore[override]
        fault = self._draw(self.commit_rate, ("lost", "unseen"))
        if fault == "lost":
            raise StoreUnavailable("injected: it did not happen")
        rows = await super().commit(batch, fence)
        if fault == "unseen":
            raise StoreUnavailable("injected: it happened", outcome_unknown=True)
        return rows

    async def history(self, run: RunId, after: int = 0, limit: int | None = None) -> list[Event]:
        self._may_fail()
        return await super().history(run, after, limit)

    async def find_runs(self, query: RunQuery) -> list[RunRow]:
        self._may_fail()
        return await super().find_runs(query)

    async def outbox(self, shard: int, after: int = 0, limit: int = 1_000, parked: bool = False) -> list[OutboxRow]:  # type: ignore[override]
        self._may_fail()
        return await super().outbox(shard, after, limit, parked)

    async def timers(self, shard: int, until: int | None = None, limit: int = 1_000) -> list[TimerRow]:  # type: ignore[override]
        self._may_fail()
        return await super().timers(shard, until, limit)

    async def inbox(self, shard: int, limit: int = 1_000) -> list[InboxRequest]:  # type: ignore[override]
        self._may_fail()
        return await super().inbox(shard, limit)

    def _may_fail(self) -> None:
        if self._draw(self.read_rate, ("unreadable",)):
            raise StoreUnavailable("injected: unreadable")

    def _draw(self, rate: float, kinds: Sequence[str]) -> str | None:
        if not self.armed or self.random.random() >= rate:
            return None
        fault = self.random.choice(kinds)
        self.faults[fault] += 1
        return fault
