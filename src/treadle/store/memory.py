"""The reference store: dictionaries, obviously correct, gone when the process is.

Owns nothing durable. Promises the port's contract to the letter, so that what holds on it is the meaning of
the verbs; the scenario runner and the simulator live on it. Must not suspend: its coroutines finish at the
first step, which is what lets a single-threaded world drive them without an event loop (`testing.world.instant`).

History is kept as packed blocks, one per commit, and documents as packed bytes, as the real stores keep them: whatever
the codec loses is lost here too. A transaction is checked before its first write: a refused one has written nothing.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import islice

from msgspec.structs import replace

from treadle.errors import StoreConflict
from treadle.model.codec import pack_events, unpack_events
from treadle.model.effects import (
    ClearTimer,
    CloseGate,
    Effect,
    NoteGate,
    NoteItem,
    NoteMove,
    NoteVersion,
    OpenGate,
    SetTimer,
)
from treadle.model.events import Beginning, Event, TimerFired
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.model.states import RUN_ENDED, RunStatus
from treadle.store.fencing import check_cover
from treadle.store.gates import fits
from treadle.store.members import Backlog, Member, Standing
from treadle.store.memory_entities import MemoryEntities
from treadle.store.memory_following import MemoryFollowing
from treadle.store.memory_parts import Blobs, KeptRun, Leases, Nodes, backlog_of, beside_of
from treadle.store.memory_service import MemoryService
from treadle.store.packing import pack
from treadle.store.planning import key_taken, stale
from treadle.store.port import (
    ALL_GATES,
    Batch,
    Commit,
    CommitRows,
    Fence,
    GateQuery,
    GateRow,
    InboxAnswer,
    InboxRequest,
    KeptRequest,
    OutboxRow,
    RunQuery,
    RunRow,
    TimerRow,
)
from treadle.store.rows import SHARD, each, gate_row, shard_of
from treadle.store.transfer import Beside

__all__ = ["SHARD", "MemoryStore"]


class MemoryStore(MemoryFollowing, MemoryService, MemoryEntities):
    """See the module's docstring; the verbs are documented in `store.port`, `store.members`, `store.service` and
    `store.entities`. `now` is the store's clock, in milliseconds."""

    def __init__(self, shards: int = 1, now: Callable[[], int] | None = None) -> None:
        MemoryFollowing.__init__(self)
        MemoryService.__init__(self)
        MemoryEntities.__init__(self)
        self.shards = shards
        self._now = now or (lambda: time.time_ns() // 1_000_000)
        self._keys: dict[tuple[str, str], RunId] = {}
        self._outbox: dict[int, OutboxRow] = {}
        self._last_row = 0
        self._timers: dict[tuple[RunId, TimerId], int] = {}
        self._gates: dict[tuple[RunId, TokenId], GateRow] = {}
        self._leases = Leases()
        self._nodes = Nodes()
        self._blobs = Blobs()

    async def commit(self, batch: Batch, *fences: Fence) -> list[OutboxRow]:
        commits = batch.commits
        self._leases.check(fences)
        check_cover(fences, (commit.run for commit in commits), self.shards)
        self._check_commits(commits)
        # A batch that cannot be packed raises here and changes nothing.
        blocks = [pack_events(list(commit.events)) for commit in commits]
        contents = [pack(entry.body) for entry in batch.entries]
        for row in batch.done:
            self._outbox.pop(row, None)
        rows = CommitRows()
        for commit, block in zip(commits, blocks, strict=True):
            self._write(commit, block, rows)
        rows.numbers = {commit.run: self._runs[commit.run].number for commit in commits if not commit.expected_seq}
        self._write_moves()
        for row in batch.revived:
            self._park(row, None)
        for row, reason in batch.parked:
            self._park(row, reason)
        for answer in batch.answers:
            self._requests.answer(answer)
        for entry, content in zip(batch.entries, contents, strict=True):
            self._append(entry, content)
        return rows

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

    async def find_runs(self, query: RunQuery) -> list[RunRow]:
        runs = self._candidates(query)
        return [kept.row() for kept in islice((kept for kept in runs if kept.matches(query, self.shards)), query.limit)]

    async def find_gates(self, query: GateQuery = ALL_GATES) -> list[GateRow]:
        rows = [row for row in self._gates.values() if fits(query, row)]
        return sorted(rows, key=lambda row: row.place)[: query.limit]

    async def outbox(
        self, shard: int | Sequence[int], after: int = 0, limit: int = 1_000, parked: bool = False
    ) -> list[OutboxRow]:
        shards = each(shard)
        rows = (row for row in self._outbox.values() if row.id > after and (row.parked is not None) is parked)
        return list(islice((row for row in rows if self._shard_of(row.run) in shards), limit))

    async def timers(self, shard: int | Sequence[int], until: int | None = None, limit: int = 1_000) -> list[TimerRow]:
        shards = each(shard)
        rows = [
            TimerRow(run, timer, due)
            for (run, timer), due in self._timers.items()
            if (until is None or due <= until)
            and self._shard_of(run) in shards
            and self._runs[run].status is not RunStatus.PAUSED
        ]
        return sorted(rows, key=lambda row: row.due)[:limit]

    async def lease(self, shard: int, owner: str, now: int | None, ttl_ms: int, evict: bool = False) -> Fence | None:
        return self._leases.take(shard, owner, self._now() if now is None else now, ttl_ms, evict)

    async def release(self, fence: Fence) -> None:
        self._leases.release(fence)

    async def submit(self, request: InboxRequest) -> InboxAnswer | None:
        return self._requests.submit(request)

    answer = submit  # in memory, asking again costs no more than reading

    async def inbox(self, shard: int | Sequence[int], limit: int = 1_000) -> list[InboxRequest]:
        shards = each(shard)
        return [one for one in self._requests.waiting() if self._shard_of(one.run) in shards][:limit]

    async def kept(self, run: RunId | None = None, request: str | None = None, limit: int = 1_000) -> list[KeptRequest]:
        return self._requests.kept(run, request, limit)

    async def beat(self, node: Member, ttl_ms: int) -> Standing:
        now = self._now()
        self._leases.renew(node.owner, now, ttl_ms)
        self._nodes.beat(node, now, ttl_ms)
        return await self.standing()

    async def leave(self, owner: str) -> None:
        self._nodes.leave(owner)

    async def bury(self, owner: str) -> None:
        self._leases.end(owner)
        self._nodes.leave(owner)

    async def standing(self) -> Standing:
        now = self._now()
        return Standing(now, self._nodes.alive(now), self._leases.held(now))

    async def backlog(self) -> list[Backlog]:
        now = self._now()
        every = range(self.shards)
        asked = [(self._shard_of(request.run), request.at) for request in self._requests.waiting()]
        due = [(self._shard_of(row.run), row.due) for row in await self.timers(every, now, len(self._timers))]
        return backlog_of(now, asked, due)

    async def put_blob(self, run: RunId, content: bytes) -> str:
        return self._blobs.put(run, content)

    async def get_blob(self, digest: str) -> bytes | None:
        return self._blobs.get(digest)

    async def beside(self, runs: Sequence[RunId]) -> Beside:
        items = {run: dict(self._runs[run].items) for run in runs if run in self._runs}
        return beside_of(set(runs), self._timers, self._gates, self._outbox, self._moves_of_runs(set(runs)), items)

    async def forget(self, runs: Sequence[RunId], *fences: Fence, history: bool = True) -> None:
        self._leases.check(fences)
        dropped = 0
        for run in runs:
            kept = self._runs.get(run)
            if kept is None or kept.status not in RUN_ENDED:
                continue  # it was revived after the caller had found it finished
            self._drop_rows(run)
            dropped = max(dropped, kept.numbers[-1])
            if not history:
                kept.shorten()
                continue
            del self._runs[run]
            for key in kept.keys:
                del self._keys[kept.started.workflow, key]
        self._forgot(dropped)

    def _drop_rows(self, run: RunId) -> None:
        self._outbox = {row.id: row for row in self._outbox.values() if row.run != run}
        self._timers = {key: due for key, due in self._timers.items() if key[0] != run}
        self._drop_gates(run)
        self._requests.forget(run)
        self._blobs.forget(run)

    def _drop_gates(self, run: RunId) -> None:
        self._gates = {key: row for key, row in self._gates.items() if key[0] != run}

    def _candidates(self, query: RunQuery) -> list[KeptRun]:
        """The runs in the wanted order, beginning after the run `after`; none if that is unknown."""
        if query.run is not None:
            names = [query.run]
        elif query.workflow is not None and query.idempotency_key is not None:
            names = [run for run in [self._keys.get((query.workflow, query.idempotency_key))] if run is not None]
        else:
            names = list(self._runs)
        names = names[::-1] if query.newest_first else names
        if query.after is not None:
            names = names[names.index(query.after) + 1 :] if query.after in names else []
        return [self._runs[name] for name in names if name in self._runs]

    def _shard_of(self, run: RunId) -> int:
        return shard_of(run, self.shards)

    def _check_commits(self, commits: Sequence[Commit]) -> None:
        seqs: dict[RunId, int] = {}
        keys: set[tuple[str, str]] = set()
        for commit in commits:
            known = self._runs.get(commit.run)
            seq = seqs.get(commit.run, known.seq if known else 0)
            if commit.expected_seq != seq:
                raise stale(commit.run, seq, commit.expected_seq)
            if seq == 0:
                self._check_start(commit, keys)
            for effect in commit.effects:
                if isinstance(effect, NoteItem):
                    self._check_key(effect.workflow, effect.key, keys)
            for event in commit.events:
                seq += 1
                if event.seq != seq:
                    raise StoreConflict("STALE_VERSION", f"run {commit.run}: event {event.seq} cannot follow {seq - 1}")
            seqs[commit.run] = seq

    def _check_start(self, commit: Commit, taken: set[tuple[str, str]]) -> None:
        started = commit.events[0] if commit.events else None
        if not isinstance(started, Beginning):
            raise StoreConflict("STALE_VERSION", f"run {commit.run} does not exist, and this does not start it")
        self._check_key(started.workflow, started.idempotency_key, taken)

    def _check_key(self, workflow: str, key: str | None, taken: set[tuple[str, str]]) -> None:
        if key is not None:
            if (workflow, key) in self._keys or (workflow, key) in taken:
                raise key_taken(workflow, key)
            taken.add((workflow, key))

    def _write(self, commit: Commit, block: bytes, rows: list[OutboxRow]) -> None:
        run = self._runs.get(commit.run) or self._create(commit)
        run.append(commit, block, self._next_number(commit))
        if self._timers:
            for event in commit.events:
                if isinstance(event, TimerFired):
                    self._timers.pop((commit.run, event.timer), None)
        for effect in commit.effects:
            self._keep(run, commit, effect, rows)
        if self._gates and commit.status in RUN_ENDED:
            self._drop_gates(commit.run)

    def _create(self, commit: Commit) -> KeptRun:
        started = commit.events[0]
        assert isinstance(started, Beginning)
        if started.idempotency_key is not None:
            self._keys[started.workflow, started.idempotency_key] = commit.run
        self._last_run += 1
        began = commit.events[commit.cuts[-1]].at if commit.cuts else started.at
        run = KeptRun(started, commit.status, started.version, number=self._last_run, began=began)
        self._runs[commit.run] = run
        return run

    def _keep(self, run: KeptRun, commit: Commit, effect: Effect, rows: list[OutboxRow]) -> None:
        """Puts timers and gates into tables of their own, because timers are found by due time and gates by run. An
        opened gate also gets an outbox row, which tells subscribers; a closed one does not."""
        if isinstance(effect, SetTimer):
            self._timers[commit.run, effect.timer] = effect.due
        elif isinstance(effect, ClearTimer):
            self._timers.pop((commit.run, effect.timer), None)
        elif isinstance(effect, CloseGate):
            self._gates.pop((commit.run, effect.token), None)
        elif isinstance(effect, NoteGate):
            if (noted := self._gates.get((commit.run, effect.token))) is not None:
                self._gates[commit.run, effect.token] = noted.noted(effect)
        elif isinstance(effect, NoteMove):
            self._noted.append((commit.run, effect))
        elif isinstance(effect, NoteItem):
            run.items[effect.start] = effect.key
            if effect.key is not None:
                self._keys[effect.workflow, effect.key] = commit.run
        elif isinstance(effect, NoteVersion):
            run.version = effect.version
        else:
            if isinstance(effect, OpenGate):
                self._gates[commit.run, effect.token] = gate_row(commit, effect, run.started.workflow)
            self._last_row += 1
            row = OutboxRow(self._last_row, commit.run, effect)
            self._outbox[row.id] = row
            rows.append(row)

    def _park(self, id: int, reason: str | None) -> None:
        if (row := self._outbox.get(id)) is not None:
            self._outbox[id] = replace(row, parked=reason)
