"""The only access of an engine to its store, with the crash points of a commit; after a crash it is closed.

Owns the record of durable commits for the world: every run in order of creation, and its newest sequence number.
Promises that a dead engine neither reads nor writes, even if parts of it are still alive in the event loop. Must not
know the meaning of a batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from treadle.errors import StoreConflict, StoreUnavailable
from treadle.model.ids import RunId
from treadle.store.port import Batch, Fence, OutboxRow, RunQuery, Store
from treadle.testing.world.fuse import Crashed
from treadle.testing.world.surroundings import Surroundings


class Doorway:
    """The store as one engine sees it: every method of the port, by delegation."""

    def __init__(self, around: Surroundings, heads: dict[RunId, int], blow: Callable[[Crashed], None]) -> None:
        self._around = around
        self._heads = heads
        self._blow = blow
        self._barred = False
        self._committed = 0
        self.complaints: list[str] = []
        """A breach of the engine's promises that was seen here."""

    def bar(self) -> None:
        """Closes it: the engine is dead."""
        self._barred = True

    def take_committed(self) -> int:
        """How many decisions the last batch made durable; 0 when asked again."""
        committed, self._committed = self._committed, 0
        return committed

    async def commit(self, batch: Batch, *fences: Fence) -> list[OutboxRow]:
        await self._pass()
        try:
            for _commit in batch.commits:
                self._around.fuse.passing("before_commit")
        except Crashed as crash:
            self._blow(crash)
            await self._pass()
        self.complaints += [f"outbox row {row} was given up: {reason}" for row, reason in batch.parked]
        try:
            rows = await self._around.store.commit(batch, *fences)
        except StoreConflict as conflict:
            self.complaints.append(f"a batch was refused: {conflict}")
            raise
        except StoreUnavailable:
            if await self._has_happened(batch):
                self._remember(batch)
            raise
        self._remember(batch)
        return rows

    async def _has_happened(self, batch: Batch) -> bool:
        """The outcome is unknown to the engine; the world knows it."""
        for commit in batch.commits:
            rows = await self._around.store.find_runs(RunQuery(run=commit.run))
            return bool(rows) and rows[0].seq > commit.expected_seq
        return False

    def _remember(self, batch: Batch) -> None:
        self._committed = len(batch.commits)
        for commit in batch.commits:
            if commit.expected_seq == 0:
                self._around.runs.append(commit.run)
            self._heads[commit.run] = commit.expected_seq + len(commit.events)

    async def _pass(self) -> None:
        if self._barred:
            await asyncio.get_running_loop().create_future()  # no answer will ever come

    def __getattr__(self, verb: str) -> Any:
        ask = getattr(self._around.store, verb)
        if not callable(ask):
            return ask  # for instance `shards`

        async def asked(*arguments: Any, **named: Any) -> Any:
            await self._pass()
            return await ask(*arguments, **named)

        return asked


def as_store(doorway: Doorway) -> Store:
    """The doorway, typed as the store that the engine expects."""
    store: Any = doorway
    found: Store = store
    return found
