"""The independent parts of the reference store: a run's blocks, leases, requests, documents, blobs.

Owns one dictionary each. Promises what `store.port` says of the verbs that use it. Must not see a transaction: the
store checks, these write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec import msgpack

from treadle.model.codec import pack_events, unpack_events
from treadle.model.events import RunStarted
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.model.states import RunStatus
from treadle.store.fencing import refusal
from treadle.store.members import Backlog, Lease, Member
from treadle.store.port import (
    Commit,
    Fence,
    InboxAnswer,
    InboxRequest,
    Json,
    OutboxRow,
    RunQuery,
    RunRow,
    StoredDocument,
)
from treadle.store.rows import digest_of, each, shard_of
from treadle.store.transfer import Beside


@dataclass(slots=True)
class KeptRun:
    """A run's blocks; `ends[i]` is the sequence number of the last event in `blocks[i]`."""

    started: RunStarted
    status: RunStatus
    seq: int = 0
    changed: int = 0
    busy: bool = False
    blocks: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def append(self, commit: Commit, block: bytes) -> None:
        self.status = commit.status
        self.busy = commit.busy
        events = commit.events
        if events:
            self.blocks.append(block)
            last = events[-1]
            self.seq = last.seq
            self.changed = last.at
            self.ends.append(last.seq)

    def shorten(self) -> None:
        """Keeps only the first and the last event."""
        first, last = unpack_events(self.blocks[0])[0], unpack_events(self.blocks[-1])[-1]
        ends = [first] if first.seq == last.seq else [first, last]
        self.blocks = [pack_events([event]) for event in ends]
        self.ends = [event.seq for event in ends]

    def row(self) -> RunRow:
        started = self.started
        return RunRow(
            run=started.run,
            workflow=started.workflow,
            version=started.version,
            status=self.status,
            seq=self.seq,
            idempotency_key=started.idempotency_key,
            started=started.at,
            changed=self.changed,
            busy=self.busy,
            entity=started.entity.id if started.entity else None,
            tags=started.tags,
            parent=started.parent.run if started.parent else None,
        )

    def matches(self, query: RunQuery, shards: int) -> bool:
        started = self.started
        return (
            (query.run is None or query.run == started.run)
            and (query.run_ending is None or started.run.endswith(query.run_ending))
            and (query.workflow is None or query.workflow == started.workflow)
            and (query.idempotency_key is None or query.idempotency_key == started.idempotency_key)
            and (not query.statuses or self.status in query.statuses)
            and (query.tag is None or query.tag in started.tags)
            and (query.entity is None or (started.entity is not None and query.entity == started.entity.id))
            and (query.parent is None or (started.parent is not None and query.parent == started.parent.run))
            and (not query.parents or (started.parent is not None and started.parent.run in query.parents))
            and (query.busy is None or query.busy is self.busy)
            and (query.started_from is None or query.started_from <= started.at)
            and (query.started_until is None or started.at < query.started_until)
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

    def answer(self, answer: InboxAnswer) -> None:
        if answer.request in self._asked:
            self._answers.setdefault(answer.request, answer)

    def forget(self, run: RunId) -> None:
        """Drops the answers of a run. Unanswered requests stay: their senders are told that there is no such run."""
        for id in [id for id, request in self._asked.items() if request.run == run and id in self._answers]:
            del self._asked[id], self._answers[id]


class Documents:
    """Versions of named things, packed."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, str], list[tuple[str, bytes]]] = {}

    def put(self, kind: str, name: str, hash: str, body: Json) -> StoredDocument:
        versions = self._versions.setdefault((kind, name), [])
        if not versions or versions[-1][0] != hash:
            versions.append((hash, msgpack.encode(body)))
            if kind.startswith("_"):
                versions[:-1] = [("", msgpack.encode(None))] * (len(versions) - 1)
        return self._document(kind, name, len(versions))

    def find(self, kind: str, name: str | None, version: int | None) -> list[StoredDocument]:
        found = [
            self._document(*key, len(versions) if version is None else version)
            for key, versions in sorted(self._versions.items())
            if key[0] == kind and name in (None, key[1]) and (version is None or 1 <= version <= len(versions))
        ]
        return [document for document in found if document.body is not None]

    def _document(self, kind: str, name: str, version: int) -> StoredDocument:
        hash, body = self._versions[kind, name][version - 1]
        return StoredDocument(kind, name, version, hash, msgpack.decode(body))


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
    gates: Iterable[tuple[RunId, TokenId]],
    outbox: Mapping[int, OutboxRow],
) -> Beside:
    """The rows that are kept beside the histories of some runs."""
    found = Beside({}, {}, {})
    for (run, timer), due in timers.items():
        if run in wanted:
            found.timers.setdefault(run, {})[timer] = due
    for run, token in gates:
        if run in wanted:
            found.gates.setdefault(run, set()).add(token)
    for row in outbox.values():
        if row.run in wanted:
            found.outbox.setdefault(row.run, []).append(row)
    return found
