"""The one store, as engines reach it: shards, the store's own clock, and commits whose outcome nobody learns.

Owns the only clock that leases and timers go by, and which shard a run belongs to. Promises that a commit happens
entirely or not at all; whoever makes it may see an error in both cases (`Unknown`). Everything that was really
committed is shown to the `witness` in the order of commits: that is what the auditor goes by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.errors import StoreConflict
from treadle.model.commands import Command
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.model.states import RUN_OPEN
from treadle.store.port import Batch, Commit, Fence, OutboxRow, RunQuery, RunRow, Store, TimerRow
from treadle.store.rows import shard_of
from treadle.testing.simulator.faults import Faults
from treadle.testing.simulator.schedule import Schedule
from treadle.testing.simulator.shelves import NOBODY, MemoryShelves, Shelves

LEASE_MS = 300
EVERYTHING = 1 << 30
"""A simulated store is small: whoever polls it reads all there is."""

Witness = Callable[[Sequence[Commit], Sequence[Command], Fence], None]


class Unknown(Exception):
    """The connection broke during a commit: it happened, or it did not."""


class Depot:
    """See the module's docstring."""

    def __init__(self, shards: int, schedule: Schedule, faults: Faults, shelves: Shelves | None = None) -> None:
        self._shelves = shelves or MemoryShelves(shards)
        self._wait = self._shelves.wait
        self._store = self._shelves.of(NOBODY)
        self._shards = shards
        self._schedule = schedule
        self._faults = faults
        self.witness: Witness = lambda _commits, _causes, _fence: None

    @property
    def now(self) -> int:
        """The store's clock."""
        return self._schedule.now

    def shard_of(self, run: RunId) -> int:
        return shard_of(run, self._shards)

    def abandon(self, owner: str) -> None:
        """An engine has died; nobody closed its connections."""
        self._shelves.abandon(owner)

    def close(self) -> None:
        """The world has ended."""
        self._shelves.close()

    def lease(self, shard: int, owner: str) -> Fence | None:
        return self._wait(self._shelves.of(owner).lease(shard, owner, self.now, LEASE_MS))

    def commit(self, commits: Sequence[Commit], causes: Sequence[Command], fence: Fence) -> list[OutboxRow]:
        """One transaction. Raises StoreConflict, and nothing has happened; or Unknown, and nobody knows. The `causes`
        are for the witness: which command led to which commit."""
        if self._faults.happens("unknown_lost"):
            raise Unknown
        try:
            rows = self._wait(_committed(self._shelves.of(fence.owner), Batch(commits), fence))
        except StoreConflict as conflict:
            self._faults.seen[f"refused {conflict.kind}"] += 1
            raise
        self.witness(commits, causes, fence)
        if self._faults.happens("unknown_done"):
            raise Unknown
        return rows

    def acknowledge(self, row: OutboxRow, fence: Fence) -> None:
        """Whoever lost its lease cannot take rows away from the new owner."""
        self._wait(_committed(self._shelves.of(fence.owner), Batch(done=(row.id,)), fence))

    def history(self, run: RunId) -> list[Event]:
        return self._wait(self._store.history(run))

    def find_run(self, run: RunId) -> RunRow | None:
        return self._one(RunQuery(run=run))

    def find_run_by_key(self, workflow: str, key: str) -> RunRow | None:
        return self._one(RunQuery(workflow=workflow, idempotency_key=key))

    def _one(self, query: RunQuery) -> RunRow | None:
        rows = self._wait(self._store.find_runs(query))
        return rows[0] if rows else None

    def unfinished(self, shards: Sequence[int]) -> list[RunRow]:
        query = RunQuery(statuses=RUN_OPEN, shard=tuple(shards), limit=EVERYTHING)
        return self._wait(self._store.find_runs(query))

    def outbox(self, shards: Sequence[int]) -> list[OutboxRow]:
        return self._wait(self._store.outbox(shards, limit=EVERYTHING))

    def timers(self, shards: Sequence[int], until: int | None = None) -> list[TimerRow]:
        return self._wait(self._store.timers(shards, until, EVERYTHING))


async def _committed(store: Store, batch: Batch, fence: Fence) -> list[OutboxRow]:
    """Asked for where the store's event loop runs."""
    return await store.commit(batch, fence)
