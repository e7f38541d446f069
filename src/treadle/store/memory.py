"""The reference store: dictionaries, obviously correct, gone when the process is.

Owns nothing durable. Promises the port's contract to the letter, so that what holds on it is the meaning of
the verbs; the scenario runner and the simulator live on it. Must not suspend: its coroutines finish at the
first step, which is what lets a single-threaded world drive them without an event loop (`testing.instant`).

History is kept as packed blocks, one per commit, as the real stores keep it: whatever the codec loses is lost
here too. A transaction is checked completely before its first write, so a refused one has written nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from treadle.errors import StoreConflict
from treadle.model.codec import pack_events, unpack_events
from treadle.model.effects import ClearTimer, Effect, SetTimer
from treadle.model.events import Event, RunStarted, TimerFired
from treadle.model.ids import RunId, TimerId
from treadle.model.states import RunStatus
from treadle.store.port import Commit, Fence, OutboxRow, RunRow, StoredWorkflow, TimerRow

SHARD = 0
"""A process of one needs no second shard; the verbs that name one still check it."""

ENDED = frozenset(
    {
        RunStatus.COMPLETED,
        RunStatus.FAILED,
        RunStatus.CANCELLED,
        RunStatus.TIMED_OUT,
        RunStatus.COMPENSATED,
        RunStatus.COMPENSATION_FAILED,
    }
)


@dataclass(slots=True)
class _Run:
    """A run's blocks; `ends[i]` is the sequence number of the last event in `blocks[i]`."""

    started: RunStarted
    status: RunStatus
    seq: int = 0
    blocks: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def append(self, commit: Commit) -> None:
        self.status = commit.status
        if commit.events:
            self.blocks.append(pack_events(list(commit.events)))
            self.seq = commit.events[-1].seq
            self.ends.append(self.seq)

    def row(self) -> RunRow:
        started = self.started
        return RunRow(started.run, started.workflow, started.version, self.status, self.seq, started.idempotency_key)


@dataclass(slots=True)
class _Lease:
    owner: str
    epoch: int
    until: int


class MemoryStore:
    """See the module's docstring; the verbs are documented in `store.port`."""

    def __init__(self) -> None:
        self._runs: dict[RunId, _Run] = {}
        self._keys: dict[tuple[str, str], RunId] = {}
        self._outbox: dict[int, OutboxRow] = {}
        self._last_row = 0
        self._timers: dict[tuple[RunId, TimerId], int] = {}
        self._leases: dict[int, _Lease] = {}
        self._workflows: dict[str, list[StoredWorkflow]] = {}

    async def commit(self, commits: Sequence[Commit], fence: Fence) -> list[OutboxRow]:
        self._check_fence(fence)
        self._check_commits(commits)
        return [row for commit in commits for row in self._write(commit)]

    async def history(self, run: RunId, after: int = 0, limit: int | None = None) -> list[Event]:
        kept = self._runs.get(run)
        if kept is None:
            return []
        events: list[Event] = []
        for block in kept.blocks[bisect_right(kept.ends, after) :]:
            events += (event for event in unpack_events(block) if event.seq > after)
            if limit is not None and len(events) >= limit:
                return events[:limit]
        return events

    async def find_run(self, run: RunId) -> RunRow | None:
        kept = self._runs.get(run)
        return kept.row() if kept else None

    async def find_run_by_key(self, workflow: str, key: str) -> RunRow | None:
        run = self._keys.get((workflow, key))
        return self._runs[run].row() if run else None

    async def unfinished(self, shard: int) -> list[RunRow]:
        return [kept.row() for kept in self._runs.values() if shard == SHARD and kept.status not in ENDED]

    async def outbox(self, shard: int, after: int = 0, limit: int = 1_000) -> list[OutboxRow]:
        rows = [row for row in self._outbox.values() if shard == SHARD and row.id > after]
        return rows[:limit]

    async def acknowledge(self, rows: Iterable[int], fence: Fence) -> None:
        self._check_fence(fence)
        for row in rows:
            self._outbox.pop(row, None)

    async def timers(self, shard: int, until: int | None = None, limit: int = 1_000) -> list[TimerRow]:
        rows = [
            TimerRow(run, timer, due)
            for (run, timer), due in self._timers.items()
            if shard == SHARD and (until is None or due <= until)
        ]
        return sorted(rows, key=lambda row: row.due)[:limit]

    async def lease(self, shard: int, owner: str, now: int, ttl_ms: int) -> Fence | None:
        held = self._leases.get(shard)
        if held and held.until > now:
            if held.owner != owner:
                return None
            held.until = now + ttl_ms
            return Fence(owner, shard, held.epoch)
        epoch = held.epoch + 1 if held else 1
        self._leases[shard] = _Lease(owner, epoch, now + ttl_ms)
        return Fence(owner, shard, epoch)

    async def release(self, fence: Fence) -> None:
        held = self._leases.get(fence.shard)
        if held and held.epoch == fence.epoch:
            held.until = 0

    async def put_workflow(self, name: str, hash: str, definition: Any) -> StoredWorkflow:
        versions = self._workflows.setdefault(name, [])
        if not versions or versions[-1].hash != hash:
            versions.append(StoredWorkflow(name, len(versions) + 1, hash, definition))
        return versions[-1]

    async def get_workflow(self, name: str, version: int | None = None) -> StoredWorkflow | None:
        versions = self._workflows.get(name, [])
        wanted = len(versions) if version is None else version
        return versions[wanted - 1] if 1 <= wanted <= len(versions) else None

    def _check_fence(self, fence: Fence) -> None:
        held = self._leases.get(fence.shard)
        if held is None or (held.owner, held.epoch) != (fence.owner, fence.epoch):
            now = f"epoch {held.epoch} of {held.owner}" if held else "nobody"
            raise StoreConflict(
                "LEASE_CONFLICT",
                f"shard {fence.shard} belongs to {now}, not to epoch {fence.epoch} of {fence.owner}",
            )

    def _check_commits(self, commits: Sequence[Commit]) -> None:
        seqs: dict[RunId, int] = {}
        keys: set[tuple[str, str]] = set()
        for commit in commits:
            known = self._runs.get(commit.run)
            seq = seqs.get(commit.run, known.seq if known else 0)
            if commit.expected_seq != seq:
                raise StoreConflict(
                    "STALE_VERSION", f"run {commit.run} is at {seq}, the decision saw {commit.expected_seq}"
                )
            if seq == 0 and not (commit.events and isinstance(commit.events[0], RunStarted)):
                raise StoreConflict("STALE_VERSION", f"run {commit.run} does not exist, and this does not start it")
            for event in commit.events:
                seq += 1
                if event.seq != seq:
                    raise StoreConflict("STALE_VERSION", f"run {commit.run}: event {event.seq} cannot follow {seq - 1}")
            seqs[commit.run] = seq
            self._check_key(commit, keys)

    def _check_key(self, commit: Commit, taken: set[tuple[str, str]]) -> None:
        key = _idempotency_key(commit)
        if key is None:
            return
        if key in self._keys or key in taken:
            raise StoreConflict("DUPLICATE", f"a run of {key[0]} with the idempotency key {key[1]!r} exists already")
        taken.add(key)

    def _write(self, commit: Commit) -> list[OutboxRow]:
        if commit.run not in self._runs:
            self._create(commit)
        self._runs[commit.run].append(commit)
        for event in commit.events if self._timers else ():
            if isinstance(event, TimerFired):
                self._timers.pop((commit.run, event.timer), None)
        rows = [row for effect in commit.effects if (row := self._keep(commit.run, effect))]
        self._outbox |= {row.id: row for row in rows}
        return rows

    def _create(self, commit: Commit) -> None:
        started = commit.events[0]
        assert isinstance(started, RunStarted)
        self._runs[commit.run] = _Run(started, commit.status)
        key = _idempotency_key(commit)
        if key is not None:
            self._keys[key] = commit.run

    def _keep(self, run: RunId, effect: Effect) -> OutboxRow | None:
        """Timers are found by their due time, so they live in rows of their own; everything else is the
        outbox's."""
        if isinstance(effect, SetTimer):
            self._timers[run, effect.timer] = effect.due
            return None
        if isinstance(effect, ClearTimer):
            self._timers.pop((run, effect.timer), None)
            return None
        self._last_row += 1
        return OutboxRow(self._last_row, run, effect)


def _idempotency_key(commit: Commit) -> tuple[str, str] | None:
    started = commit.events[0] if commit.events and commit.expected_seq == 0 else None
    if isinstance(started, RunStarted) and started.idempotency_key is not None:
        return started.workflow, started.idempotency_key
    return None
