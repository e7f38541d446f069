"""The independent parts of the reference store: a run's blocks, leases, requests, blobs.

Owns one dictionary each. Promises what `store.port` says of the verbs that use it. Must not see a transaction: the
store checks, these write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from treadle.model.codec import pack_events, unpack_events
from treadle.model.events import Beginning
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.model.states import RunStatus
from treadle.store.entities import MoveRow
from treadle.store.fencing import refusal
from treadle.store.following import shortened
from treadle.store.gates import GateRow, changing
from treadle.store.members import Backlog, Lease, Member
from treadle.store.port import (
    KEPT,
    Commit,
    Fence,
    InboxAnswer,
    InboxRequest,
    KeptRequest,
    KnownRequest,
    OutboxRow,
    RunQuery,
    RunRow,
)
from treadle.store.rows import digest_of, each, parts_of, shard_of
from treadle.store.transfer import Beside


@dataclass(slots=True)
class KeptRun:
    """A run's blocks; `ends[i]` is the sequence number of the last event in `blocks[i]`."""

    started: Beginning
    status: RunStatus
    version: int
    seq: int = 0
    changed: int = 0
    busy: bool = False
    blocks: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    number: int = 0
    numbers: list[int] = field(default_factory=list)
    """Of the blocks, in the order of all events (`store.following`)."""
    began: int = 0
    """When it started; of a fork when that was made."""
    items: dict[RunId, str | None] = field(default_factory=dict)
    """Starts that have become items of it, with their keys."""

    def append(self, commit: Commit, block: bytes, number: int) -> None:
        self.status = commit.status
        self.busy = commit.busy
        events = commit.events
        if events:
            parts = parts_of(list(events), commit.cuts) if commit.cuts else []
            self.blocks += [pack_events(part) for part in parts] or [block]
            self.numbers += [number] * (len(parts) or 1)
            last = events[-1]
            self.seq = last.seq
            self.changed = last.at
            self.ends += [part[-1].seq for part in parts] or [last.seq]

    def shorten(self) -> None:
        """Keeps only the first and the last event."""
        first, last = unpack_events(self.blocks[0])[0], unpack_events(self.blocks[-1])[-1]
        kept = shortened(self.numbers[0], first, self.numbers[-1], last)
        self.blocks = [pack_events(events) for events in kept.values()]
        self.ends = [events[-1].seq for events in kept.values()]
        self.numbers = list(kept)

    def row(self) -> RunRow:
        started = self.started
        return RunRow(
            run=started.run,
            workflow=started.workflow,
            version=self.version,
            status=self.status,
            seq=self.seq,
            idempotency_key=started.idempotency_key,
            started=self.began,
            changed=self.changed,
            busy=self.busy,
            entity=started.entity.address if started.entity else None,
            tags=started.tags,
            parent=started.parent.run if started.parent else None,
            number=self.number,
        )

    @property
    def keys(self) -> list[str]:
        """The idempotency keys that lead to the run: its own, and those of its items."""
        return [key for key in (self.started.idempotency_key, *self.items.values()) if key is not None]

    def has_text(self, text: str) -> bool:
        started = self.started
        entity = started.entity.address if started.entity else ""
        texts = (started.run, started.idempotency_key or "", entity, *started.tags)
        return any(text.lower() in one.lower() for one in texts)

    def matches(self, query: RunQuery, shards: int) -> bool:
        started = self.started
        return (
            (query.run is None or query.run == started.run)
            and (query.run_ending is None or started.run.endswith(query.run_ending))
            and (query.workflow is None or query.workflow == started.workflow)
            and (query.idempotency_key is None or query.idempotency_key in self.keys)
            and (query.item is None or query.item in self.items)
            and (not query.statuses or self.status in query.statuses)
            and (query.version is None or query.version == self.version)
            and (query.tag is None or query.tag in started.tags)
            and all(tag in started.tags for tag in query.tags)
            and (query.text is None or self.has_text(query.text))
            and (query.beyond is None or (self.number < query.beyond) is query.newest_first)
            and query.beyond != self.number
            and (query.down_to is None or query.down_to <= self.number)
            and (query.entity is None or (started.entity is not None and query.entity == started.entity.address))
            and (query.parent is None or (started.parent is not None and query.parent == started.parent.run))
            and (not query.parents or (started.parent is not None and started.parent.run in query.parents))
            and (query.busy is None or query.busy is self.busy)
            and (query.started_from is None or query.started_from <= self.began)
            and (query.started_until is None or self.began < query.started_until)
            and (query.shard is None or shard_of(started.run, shards) in each(query.shard))
        )


@dataclass(slots=True)
class _Lease:
    owner: str
    epoch: int
    until: int


class Leases:
    """The leases, by shard."""

    def __init__(self) -> None:
        self._held: dict[int, _Lease] = {}

    def take(self, shard: int, owner: str, now: int, ttl_ms: int, evict: bool) -> Fence | None:
        held = self._held.get(shard)
        if held and held.until > now and not evict:
            if held.owner != owner:
                return None
            held.until = now + ttl_ms
            return Fence(owner, shard, held.epoch)
        epoch = held.epoch + 1 if held else 1
        self._held[shard] = _Lease(owner, epoch, now + ttl_ms)
        return Fence(owner, shard, epoch)

    def release(self, fence: Fence) -> None:
        held = self._held.get(fence.shard)
        if held and (held.owner, held.epoch) == (fence.owner, fence.epoch):
            held.until = 0

    def end(self, owner: str) -> None:
        """Lets all leases of an owner run out at once."""
        for held in self._held.values():
            if held.owner == owner:
                held.until = 0

    def check(self, fences: Sequence[Fence]) -> None:
        if refused := refusal(fences, {shard: (held.owner, held.epoch) for shard, held in self._held.items()}):
            raise refused

    def renew(self, owner: str, now: int, ttl_ms: int) -> None:
        for held in self._held.values():
            if held.owner == owner and held.until > now:
                held.until = now + ttl_ms

    def held(self, now: int) -> list[Lease]:
        """The leases that have not run out."""
        return [
            Lease(shard, held.owner, held.epoch, held.until)
            for shard, held in sorted(self._held.items())
            if held.until > now
        ]


class Nodes:
    """The nodes that are alive, and until when."""

    def __init__(self) -> None:
        self._until: dict[str, int] = {}
        self._nodes: dict[str, Member] = {}

    def beat(self, node: Member, now: int, ttl_ms: int) -> None:
        known = self._nodes.get(node.owner)
        started = known.started if known else now
        self._nodes[node.owner] = msgspec.structs.replace(node, started=started, beat=now)
        self._until[node.owner] = now + ttl_ms

    def alive(self, now: int) -> list[Member]:
        return [node for owner, node in sorted(self._nodes.items()) if self._until[owner] > now]

    def leave(self, owner: str) -> None:
        self._nodes.pop(owner, None)
        self._until.pop(owner, None)


def backlog_of(now: int, asked: list[tuple[int, int]], due: list[tuple[int, int]]) -> list[Backlog]:
    """Counts per shard, from (shard, since when) of everything that waits."""

    def waiting(rows: list[tuple[int, int]], shard: int) -> tuple[int, int]:
        since = [at for home, at in rows if home == shard]
        return len(since), max([0, *(now - at for at in since)])

    shards = sorted({shard for shard, _ in (*asked, *due)})
    return [Backlog(shard, *waiting(asked, shard), *waiting(due, shard)) for shard in shards]


class Requests:
    """Requests to the owner, and its answers."""

    def __init__(self) -> None:
        self._asked: dict[str, InboxRequest] = {}
        self._answers: dict[str, InboxAnswer] = {}

    def submit(self, request: InboxRequest) -> InboxAnswer | None:
        self._asked.setdefault(request.id, request)
        return self._answers.get(request.id)

    def waiting(self) -> list[InboxRequest]:
        return [request for id, request in self._asked.items() if id not in self._answers]

    def kept(self, run: RunId | None, request: str | None, limit: int) -> list[KeptRequest]:
        return [
            (asked, self._answers.get(id))
            for id, asked in sorted(self._asked.items(), reverse=True)
            if run in (None, asked.run) and (id == request if request is not None else id.startswith(KEPT))
        ][:limit]

    def find(self, run: RunId, id: str) -> KnownRequest | None:
        request = self._asked.get(id)
        if request is None or request.run != run:
            return None
        return KnownRequest(self._answers.get(id), request.fingerprint)

    def answer(self, answer: InboxAnswer) -> None:
        if answer.asked is not None:
            self._asked.setdefault(answer.request, answer.asked)
        if answer.request in self._asked:
            self._answers.setdefault(answer.request, msgspec.structs.replace(answer, run=None, asked=None))

    def forget(self, run: RunId) -> None:
        """Drops the answers of a run. Unanswered requests stay: their senders are told that there is no such run."""
        self._drop(lambda request: request.run == run and request.fingerprint is None)

    def drop_marked(self, before_at: int) -> int:
        """Drops old answers to requests with a fingerprint."""
        return self._drop(lambda request: request.fingerprint is not None and request.at < before_at)

    def _drop(self, is_gone: Callable[[InboxRequest], bool]) -> int:
        gone = [id for id, request in self._asked.items() if id in self._answers and is_gone(request)]
        for id in gone:
            del self._asked[id], self._answers[id]
        return len(gone)


class Blobs:
    """Bytes by digest, each kept while a run that put them exists."""

    def __init__(self) -> None:
        self._content: dict[str, bytes] = {}
        self._runs: dict[str, set[RunId]] = {}

    def put(self, run: RunId, content: bytes) -> str:
        digest = digest_of(content)
        self._content[digest] = content
        self._runs.setdefault(digest, set()).add(run)
        return digest

    def get(self, digest: str) -> bytes | None:
        return self._content.get(digest)

    def forget(self, run: RunId) -> None:
        for digest in [digest for digest, runs in self._runs.items() if run in runs]:
            self._runs[digest].discard(run)
            if not self._runs[digest]:
                del self._runs[digest], self._content[digest]


def beside_of(
    wanted: set[RunId],
    timers: Mapping[tuple[RunId, TimerId], int],
    gates: Mapping[tuple[RunId, TokenId], GateRow],
    outbox: Mapping[int, OutboxRow],
    moves: dict[RunId, list[MoveRow]],
    items: dict[RunId, dict[RunId, str | None]],
) -> Beside:
    """The rows that are kept beside the histories of some runs."""
    found = Beside({}, {}, {}, moves, items)
    for (run, timer), due in timers.items():
        if run in wanted:
            found.timers.setdefault(run, {})[timer] = due
    for (run, token), gate in gates.items():
        if run in wanted:
            found.gates.setdefault(run, {})[token] = changing(gate)
    for row in outbox.values():
        if row.run in wanted:
            found.outbox.setdefault(row.run, []).append(row)
    return found
