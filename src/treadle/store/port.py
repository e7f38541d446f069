"""What an engine asks of a store, in the words of the domain.

Owns the verbs every store answers and the records that travel through them. Promises nothing by itself; the
contract suite (`tests/contract`) is run on every store. Must not know a rule: a store never decides what
follows from an event.

Theory of operation
    There is one write verb for runs, `commit`: all of its commits happen in one transaction or none does. A
    commit says which sequence number it was decided on; history is gap-free, so a decision made on anything
    older is refused with STALE_VERSION. It is fenced by the lease its engine holds; whoever lost the lease is
    refused with LEASE_CONFLICT, however late it wakes up. Effects become outbox rows in the same transaction
    (timers: rows of their own, found by due time), so that what the world has to be told is as durable as the
    decision that says so. A row leaves the outbox by `acknowledge` and in no other way.

Invariants
    1. history(run) is exactly the concatenation of the events committed for it, seq 1, 2, 3, … without a gap.
    2. An outbox row exists from the commit that made it until it is acknowledged, and outbox() gives rows in
       the order of commit.
    3. A timer exists from SetTimer until ClearTimer or its timer.fired, whichever is first; setting it again
       moves it.
    4. For one workflow and idempotency key there is at most one run.
    5. Of all fences handed out for one shard only the newest commits; its epoch is greater than every earlier
       one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from msgspec import Struct

from treadle.model.effects import Effect
from treadle.model.events import Event
from treadle.model.ids import RunId, TimerId
from treadle.model.states import RunStatus


class Fence(Struct, frozen=True):
    """Proof of a lease: which engine, which shard of the runs, which epoch of its ownership."""

    owner: str
    shard: int
    epoch: int


class Commit(Struct, frozen=True):
    """One decision about one run."""

    run: RunId
    expected_seq: int
    """Of the last event the decision has seen; 0 creates the run."""
    events: Sequence[Event]
    effects: Sequence[Effect]
    status: RunStatus
    """The run's status after these events: kept beside the history so that nobody has to fold it to find open
    runs."""


class OutboxRow(Struct, frozen=True):
    """Something the world has still to be told."""

    id: int
    run: RunId
    effect: Effect


class TimerRow(Struct, frozen=True):
    """A durable timer that has neither fired nor been cleared."""

    run: RunId
    timer: TimerId
    due: int


class RunRow(Struct, frozen=True):
    """What is known of a run without folding its history."""

    run: RunId
    workflow: str
    version: int
    status: RunStatus
    seq: int
    idempotency_key: str | None = None


class StoredWorkflow(Struct, frozen=True):
    """One immutable version: the canonical definition and its hash."""

    name: str
    version: int
    hash: str
    definition: Any


class Store(Protocol):
    """The port. Every verb is one round trip; those that write are one transaction."""

    async def commit(self, commits: Sequence[Commit], fence: Fence) -> list[OutboxRow]:
        """Writes decisions about any number of runs; the new outbox rows, in order. Raises `StoreConflict`."""

    async def history(self, run: RunId, after: int = 0, limit: int | None = None) -> list[Event]:
        """A run's events with seq > `after`, oldest first; empty for an unknown run."""

    async def find_run(self, run: RunId) -> RunRow | None:
        """What is known of a run."""

    async def find_run_by_key(self, workflow: str, key: str) -> RunRow | None:
        """The run that was started with this idempotency key."""

    async def unfinished(self, shard: int) -> list[RunRow]:
        """Runs that may still do something, oldest first: what a new owner has to recover."""

    async def outbox(self, shard: int, after: int = 0, limit: int = 1_000) -> list[OutboxRow]:
        """Rows not yet acknowledged, oldest first."""

    async def acknowledge(self, rows: Iterable[int], fence: Fence) -> None:
        """The world has been told; repeating it is harmless."""

    async def timers(self, shard: int, until: int | None = None, limit: int = 1_000) -> list[TimerRow]:
        """Timers by due time, those due at `until` included."""

    async def lease(self, shard: int, owner: str, now: int, ttl_ms: int) -> Fence | None:
        """Takes or renews a shard; None while somebody else holds an unexpired lease. A renewal keeps its
        epoch."""

    async def release(self, fence: Fence) -> None:
        """Gives a shard back before its lease expires; a fence that is no longer the newest changes nothing."""

    async def put_workflow(self, name: str, hash: str, definition: Any) -> StoredWorkflow:
        """Keeps a version; deploying what is already the newest gives that version again."""

    async def get_workflow(self, name: str, version: int | None = None) -> StoredWorkflow | None:
        """One version, or the newest."""
