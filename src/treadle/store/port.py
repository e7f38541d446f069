"""The port: what an engine asks of a store, in the words of the domain.

Owns the verbs every store answers and the records that travel through them. Promises nothing by itself; the
contract suite (`tests/contract`) is run on every store. Must not know a rule: a store never decides what
follows from an event.

Theory of operation
    Everything an engine writes goes through one verb, `commit`: a batch happens in one transaction or not at
    all. It holds decisions about any number of runs, outbox rows that are done with, and answers to requests.
    A decision says which sequence number it was made on; history is gap-free, so one made on anything older is
    refused with STALE_VERSION. The batch is fenced by the lease its engine holds; an engine that lost the lease is
    refused with LEASE_CONFLICT, however late it wakes up. Effects become rows in the same transaction (timers
    by due time, gates by run and token, everything else in the outbox), so that what the world has to be told
    is as durable as the decision that says so.

    Everybody else writes through `submit`: a request waits in the inbox until the owner of its run answers it,
    in the transaction of the decision it led to. A request has an id its sender chose, so asking again is
    harmless and finds the same answer.

Invariants
    1. history(run) is exactly the concatenation of the events committed for it, seq 1, 2, 3, … without a gap
       (after `forget` with `history=True`: nothing, and no run).
    2. An outbox row exists from the commit that made it until a batch names it in `done`; outbox() gives rows
       in the order of commit. A parked row (a dead letter) is not given until a batch revives it.
    3. A timer exists from SetTimer until ClearTimer or its timer.fired, whichever is first; setting it again
       moves it. Timers of a paused run stand still: they are kept and not given.
    4. For one workflow and idempotency key there is at most one run. The key of a start that has become an item of a
       batch (NoteItem) names the batch's run, as long as that exists.
    5. Of all fences handed out for one shard only the newest commits; its epoch is greater than every earlier
       one. A batch reaches over any number of shards: every run of its must be covered by a fence, and every
       fence that is given must be the newest. That an outbox row is done with is a fact and needs no fence.
    6. A request has at most one answer, and the first is kept.
    7. A gate's row exists from OpenGate until CloseGate or the end of its run, and says what the last NoteGate said.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from treadle.model.effects import Effect
from treadle.model.events import Event
from treadle.model.ids import RunId, TimerId
from treadle.model.states import RunStatus
from treadle.store.gates import ALL_GATES as ALL_GATES
from treadle.store.gates import GateQuery as GateQuery
from treadle.store.gates import GateRow as GateRow
from treadle.store.gates import can as can
from treadle.store.log_entries import Entry as Entry
from treadle.store.requests import InboxAnswer as InboxAnswer
from treadle.store.requests import InboxRequest as InboxRequest
from treadle.store.requests import KeptRequest as KeptRequest
from treadle.store.requests import KnownRequest as KnownRequest

Json = Any
KEPT = "kept-"
"""The id of a request whose sender found no engine begins so: the sender does not wait for the answer."""


class Fence(Struct, frozen=True):
    """Proof of a lease: which engine, which shard of the runs, which epoch of its ownership."""

    owner: str
    shard: int
    epoch: int


class Commit(Struct, frozen=True):
    """One decision about one run."""

    run: RunId
    expected_seq: int
    """The sequence number of the last event that the decision has seen; 0 creates the run."""
    events: Sequence[Event]
    effects: Sequence[Effect]
    status: RunStatus
    """The run's status after these events. It is kept beside the history, so that open runs are found without folding
    their histories."""
    busy: bool = False
    """Whether an attempt of the run is executed without a claim of its own: a new owner must look after it first."""
    cuts: Sequence[int] = ()
    """Of a fork: the sequence numbers at which the decisions of its inherited past ended. They stay apart, as if each
    had been committed on its own (`ServiceStore.decisions`), and the run counts as started at the first event behind
    them."""


class Batch(Struct, frozen=True):
    """All that one transaction writes."""

    commits: Sequence[Commit] = ()
    done: Sequence[int] = ()
    """Outbox rows that were delivered; repeating it is harmless."""
    parked: Sequence[tuple[int, str]] = ()
    """Outbox rows that were given up (dead letters), with the reason."""
    revived: Sequence[int] = ()
    """Parked rows to deliver again."""
    answers: Sequence[InboxAnswer] = ()
    entries: Sequence[Entry] = ()
    """Entries of logs (`store.service`) that are there if and only if the batch is."""


class OutboxRow(Struct, frozen=True):
    """An effect that is still to be delivered."""

    id: int
    run: RunId
    effect: Effect
    parked: str | None = None
    """Why its delivery was given up; None: it was not."""


class CommitRows(list[OutboxRow]):
    """The outbox rows that a commit has made, in order."""

    numbers: Mapping[RunId, int] = {}
    """The numbers (`RunRow.number`) of runs that the commit has created, where the store knows them without another
    query; of others nothing."""


class TimerRow(Struct, frozen=True):
    """A durable timer that has neither fired nor been cleared."""

    run: RunId
    timer: TimerId
    due: int


class RunRow(Struct, frozen=True):
    """A run as a row, readable without folding its history."""

    run: RunId
    workflow: str
    version: int
    status: RunStatus
    seq: int
    idempotency_key: str | None = None
    started: int = 0
    """The time of its first event; `changed` is the time of its last."""
    changed: int = 0
    busy: bool = False
    entity: str | None = None
    """TYPE/ID; of a run that version 0.1 has started the id alone."""
    tags: tuple[str, ...] = ()
    parent: RunId | None = None
    number: int = 0
    """In the order of creation; only grows."""


class RunQuery(Struct, frozen=True):
    """A query for runs: every condition that is set must hold."""

    run: RunId | None = None
    run_ending: str | None = None
    """The last characters of the id. They have no index: only for people, who ask rarely."""
    workflow: str | None = None
    version: int | None = None
    idempotency_key: str | None = None
    """Of the run, or of a start that has become an item of it (NoteItem)."""
    item: RunId | None = None
    """The run that a start had asked for, which has become an item of the wanted run."""
    statuses: tuple[RunStatus, ...] = ()
    tag: str | None = None
    tags: tuple[str, ...] = ()
    """All of them must hold."""
    text: str | None = None
    """A part of the id, key, a tag or the entity, in any case of letters. It has no index."""
    entity: str | None = None
    """TYPE/ID."""
    parent: RunId | None = None
    parents: tuple[RunId, ...] = ()
    """Runs that any of these runs has started; empty: any."""
    busy: bool | None = None
    started_from: int | None = None
    started_until: int | None = None
    """Exclusive upper bound."""
    shard: int | tuple[int, ...] | None = None
    newest_first: bool = False
    """Newest first; else in order of creation."""
    after: RunId | None = None
    """The page begins after this run."""
    beyond: int | None = None
    """The page begins after the run of this number (`RunRow.number`), whether it is still there or not."""
    down_to: int | None = None
    """Runs of smaller numbers are not looked at: for queries without an index, which look a part at a time."""
    limit: int = 1_000


class StoredDocument(Struct, frozen=True):
    """One immutable version of something named: a workflow, a schedule. Of a kind that begins with `_` only the newest
    version is kept: it is an engine's own note, and nobody asks for older ones."""

    kind: str
    name: str
    version: int
    hash: str
    body: Json


@runtime_checkable
class KeepsKey(Protocol):
    """A store that keeps the key of callback tokens apart from everything else."""

    async def callback_key(self, known: str | None) -> str:
        """The key. The first call makes one, unless it is `known`."""


class Store(Protocol):
    """The port. Every verb is one round trip; those that write are one transaction."""

    shards: int
    """The number of shards over which runs are spread; fixed for the life of a store."""

    def commit(self, batch: Batch, *fences: Fence) -> Awaitable[list[OutboxRow]]:
        """Writes a batch and returns the new outbox rows, in order; as `CommitRows` if it has created runs and knows
        their numbers. Raises `StoreConflict`. Every fence is compared, even with an empty batch. If the returned future
        is done already, there is nothing to wait for."""

    async def history(self, run: RunId, after: int = 0, limit: int | None = None) -> list[Event]:
        """A run's events with seq > `after`, oldest first; empty for an unknown run."""

    async def find_runs(self, query: RunQuery) -> list[RunRow]:
        """The runs a query describes."""

    async def find_gates(self, query: GateQuery = ALL_GATES) -> list[GateRow]:
        """The open gates a query asks for, longest open first."""

    async def outbox(
        self, shard: int | Sequence[int], after: int = 0, limit: int = 1_000, parked: bool = False
    ) -> list[OutboxRow]:
        """Rows that are still to be delivered, or the parked ones, oldest first. Commits of one shard follow each
        other: rows `after` the last one seen are complete for shards whose commits all went through the caller."""

    async def timers(self, shard: int | Sequence[int], until: int | None = None, limit: int = 1_000) -> list[TimerRow]:
        """Timers by due time, those due at `until` included."""

    async def lease(self, shard: int, owner: str, now: int | None, ttl_ms: int, evict: bool = False) -> Fence | None:
        """Takes or renews a shard's lease; None while another owner holds an unexpired one. A renewal keeps its epoch.
        `now` None: the store's own clock, which engines on many machines share. `evict`: the caller knows that the
        holder is gone."""

    async def release(self, fence: Fence) -> None:
        """Gives a shard back before its lease expires; a fence that is no longer the newest changes nothing."""

    async def submit(self, request: InboxRequest) -> InboxAnswer | None:
        """Keeps a request until it is answered. Returns the answer if it has one already."""

    async def answer(self, request: InboxRequest) -> InboxAnswer | None:
        """The answer to a submitted request, if it has one. Only reads, unless the store does not have the request any
        more (a standby that took over without it): then it is submitted again."""

    async def inbox(self, shard: int | Sequence[int], limit: int = 1_000) -> list[InboxRequest]:
        """Requests without an answer, oldest first."""

    async def put_document(
        self, kind: str, name: str, hash: str, body: Json, expected: int | None = None
    ) -> StoredDocument:
        """Keeps a new version; putting the newest content again returns the newest version. A body of None ends the
        name: it is a version like others, and `documents` without a version does not list it. `expected`: the version
        that must be the newest, 0 for none; otherwise raises StoreConflict (`store.service`)."""

    async def documents(self, kind: str, name: str | None = None, version: int | None = None) -> list[StoredDocument]:
        """The newest of every name, of one name, or exactly one version; without a body of None."""

    async def put_blob(self, run: RunId, content: bytes) -> str:
        """Keeps bytes for a run under their digest; the same bytes are kept once."""

    async def get_blob(self, digest: str) -> bytes | None:
        """The bytes of a digest, while any run that put them exists."""

    async def forget(self, runs: Sequence[RunId], *fences: Fence, history: bool = True) -> None:
        """Drops finished runs with everything that belongs to them alone. The same transaction checks that they are
        finished: they need no cover (the runs of one family are in many shards), but every given fence must be the
        newest. Answers to requests with a fingerprint stay. `history=False` keeps a run's row and its first and last
        event: its input and its end."""
