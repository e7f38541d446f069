"""The store in a PostgreSQL database.

Owns the verbs of the port on a database, and the transaction of each. Promises the port's contract to any number of
engines at once, and that a write is as durable as the server's commits once `commit` or `submit` has returned. Must not
know a rule, and must not decide which engine owns which shard: engines take leases.

Theory of operation
    Runs are spread over a fixed number of shards by their id. An engine leases shards and commits for the runs in them;
    other processes read, submit, put documents.

        caller                      one statement, its own transaction                server
        Batch ──► Plan (packed) ──► the leases of its shards, locked and compared
                                    runs (guarded by seq), history, rows: a part
                                    for each table, rows as arrays (`batches`)  ──►   one sync

    The lock on the lease is the fence: an engine that takes the shard over waits for commits under way, and the next
    commit of the old owner finds another epoch. It also orders the commits of one shard, so that the numbers of its
    outbox come in the order of commit and a reader that remembers the last one misses nothing.

Invariants (beside those of the port)
    1. A row of `runs` and the blocks of its history change in one transaction: runs.seq = max(history.seq).
    2. Every digest a block or effect mentions is in `blobs` of its run, in the transaction that mentioned it.
    3. A commit writes runs of the shards only whose leases it has locked.
    4. Nothing that matters is kept in a session: a pooler may hand every transaction another connection.

Failure cases
    40001, 40P01             nothing has happened; tried again here
    connection lost          with the statement of a commit: `StoreUnavailable.outcome_unknown`. Inside a transaction of
                             several statements, before its COMMIT: nothing has happened
    an engine stands still   the server finishes its statement without it; a transaction of several is ended, and with
                             it the lock on the lease
    midnight, retention      `days`
    database from tomorrow   refused, with both versions

Known limits: answers to requests about runs that never came to be stay. A request's id is its sender's within its run.
The order of creation across shards is that of numbers given before commit: a list that is read while runs are created
may show one late, in its place. Of two commits under way at once about one run the later does not see what the earlier
does to its timers and gates; that both have events, and so meet at the run's version, is the engine's business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from types import TracebackType
from typing import Any

from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.store.members import Backlog, Member, Standing
from treadle.store.packing import sealed_wish
from treadle.store.planning import BatchPlan
from treadle.store.port import (
    ALL_GATES,
    Batch,
    Fence,
    GateQuery,
    GateRow,
    InboxAnswer,
    InboxRequest,
    KeptRequest,
    KnownRequest,
    OutboxRow,
    RunQuery,
    RunRow,
    StoredDocument,
    TimerRow,
)
from treadle.store.postgres import membership, reading, run_queries, transfer, upkeep, writing
from treadle.store.postgres.batches import Writing
from treadle.store.postgres.connect import migrate
from treadle.store.postgres.days import Days
from treadle.store.postgres.eager_task import begun
from treadle.store.postgres.entities import PostgresEntities
from treadle.store.postgres.following import PostgresFollowing
from treadle.store.postgres.forgetting import forget
from treadle.store.postgres.fsck_rows import beside
from treadle.store.postgres.service import PostgresService
from treadle.store.postgres.transactions import Connections
from treadle.store.postgres.work import PostgresWork
from treadle.store.rows import digest_of, each, shard_of
from treadle.store.seals import Seals, Tell, tell_log
from treadle.store.transfer import Beside

PAYLOAD_MAX = 64 * 1024
"""A larger value is kept once for its run, outside history. Smaller ones cost less to copy than to look up."""
SHARDS = 64
"""More shards than engines on any database, so that they can be spread evenly; few enough to lease one by one."""
CONNECTIONS_MAX = 8
"""Connections of one process: one for a commit of each busy shard, and some for queries."""


class PostgresStore(PostgresFollowing, PostgresWork, PostgresService, PostgresEntities):
    """See the module's docstring; the verbs are documented in `store.port`, `store.service` and `store.entities`. Made
    by `open`."""

    def __init__(self, connections: Connections, shards: int, payload_max: int) -> None:
        self._connections = connections
        self._payload_max = payload_max
        self._days = Days(connections)
        self._recent = reading.Recent()
        self.place = connections.place
        self.shards = shards
        self.tell: Tell = tell_log
        """Is called for damaged rows that were left out."""

    @classmethod
    async def open(
        cls,
        dsn: str,
        *,
        shards: int = SHARDS,
        payload_max: int = PAYLOAD_MAX,
        connections_max: int = CONNECTIONS_MAX,
        read_only: bool = False,
        make: bool = True,
    ) -> PostgresStore:
        """Opens the database and brings it up to date, unless `make` is False. The first process that opens it decides
        the number of shards. Raises `StorePlaceError` if a store cannot be kept there, or if it was moved (it may then
        only be read)."""
        settled = await migrate(dsn, shards, make=make and not read_only)
        connections = await Connections.open(dsn, connections_max)
        store = cls(connections, settled, payload_max)
        try:
            if not read_only:
                await transfer.check_whole(connections)
            if make and not read_only:
                await store._days.look()
        except BaseException:
            await connections.close()
            raise
        return store

    async def close(self) -> None:
        """Finishes all submitted work, then closes the connections."""
        await self._connections.close()

    async def __aenter__(self) -> PostgresStore:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def shard_of(self, run: RunId) -> int:
        """The shard of a run, whose lease a commit needs."""
        return shard_of(run, self.shards)

    # Writing

    def commit(self, batch: Batch, *fences: Fence) -> Awaitable[list[OutboxRow]]:
        return begun(self._commit(batch, fences))

    async def _commit(self, batch: Batch, fences: Sequence[Fence]) -> list[OutboxRow]:
        if self._days.is_due:
            await self._days.look()
        written = Writing(BatchPlan(batch, self._payload_max), fences, self.shards)
        if written.is_alone:
            return await self._connections.write_alone(written)
        return await self._connections.write(written)

    async def lease(self, shard: int, owner: str, now: int | None, ttl_ms: int, evict: bool = False) -> Fence | None:
        return await self._connections.write_alone(
            lambda connection: writing.lease(connection, shard, owner, now, ttl_ms, evict)
        )

    async def release(self, fence: Fence) -> None:
        await self._connections.write_alone(lambda connection: writing.release(connection, fence))

    async def submit(self, request: InboxRequest) -> InboxAnswer | None:
        command, shard = sealed_wish(request), self.shard_of(request.run)
        return await self._connections.write_alone(
            lambda connection: writing.submit(connection, request, shard, command)
        )

    async def put_blob(self, run: RunId, content: bytes) -> str:
        digest = digest_of(content)
        await self._connections.write_alone(lambda connection: writing.put_blob(connection, run, digest, content))
        return digest

    async def forget(self, runs: Sequence[RunId], *fences: Fence, history: bool = True) -> None:
        await self._connections.write(lambda connection: forget(connection, runs, fences, history))
        await self._days.sweep()

    # Membership

    async def beat(self, node: Member, ttl_ms: int) -> Standing:
        if self._days.is_due:
            await self._days.look()
        return await self._connections.write_alone(lambda connection: membership.beat(connection, node, ttl_ms))

    async def leave(self, owner: str) -> None:
        await self._connections.write_alone(lambda connection: membership.leave(connection, owner))

    async def bury(self, owner: str) -> None:
        await self._connections.write_alone(lambda connection: membership.bury(connection, owner))

    async def standing(self) -> Standing:
        return await self._connections.read(membership.standing)

    async def backlog(self) -> list[Backlog]:
        return await self._connections.read(membership.backlog)

    # Reading

    async def history(self, run: RunId, after: int = 0, limit: int | None = None) -> list[Event]:
        return await self._connections.read(
            lambda connection: reading.history(connection, self._recent, run, after, limit)
        )

    async def find_runs(self, query: RunQuery) -> list[RunRow]:
        return await self._connections.read(lambda connection: run_queries.find_runs(connection, query, self.tell))

    async def find_gates(self, query: GateQuery = ALL_GATES) -> list[GateRow]:
        return await self._connections.read(lambda connection: reading.find_gates(connection, query, self.tell))

    async def outbox(
        self, shard: int | Sequence[int], after: int = 0, limit: int = 1_000, parked: bool = False
    ) -> list[OutboxRow]:
        return await self._connections.read(
            lambda connection: reading.outbox(connection, each(shard), after, limit, parked, self.tell)
        )

    async def timers(self, shard: int | Sequence[int], until: int | None = None, limit: int = 1_000) -> list[TimerRow]:
        return await self._connections.read(lambda connection: reading.timers(connection, each(shard), until, limit))

    async def answer(self, request: InboxRequest) -> InboxAnswer | None:
        known = await self.find_request(request.run, request.id)
        return known.answer if known is not None else await self.submit(request)

    async def find_request(self, run: RunId, request: str) -> KnownRequest | None:
        return await self._connections.read(lambda connection: reading.asked(connection, run, request))

    async def inbox(self, shard: int | Sequence[int], limit: int = 1_000) -> list[InboxRequest]:
        return await self._connections.read(lambda connection: reading.inbox(connection, each(shard), limit, self.tell))

    async def kept(self, run: RunId | None = None, request: str | None = None, limit: int = 1_000) -> list[KeptRequest]:
        return await self._connections.read(lambda connection: reading.kept(connection, run, request, limit, self.tell))

    async def documents(self, kind: str, name: str | None = None, version: int | None = None) -> list[StoredDocument]:
        return await self._connections.read(
            lambda connection: reading.documents(connection, kind, name, version, self.tell)
        )

    async def get_blob(self, digest: str) -> bytes | None:
        raw = writing.raw_digest(digest)
        if raw is None:
            return None
        return await self._connections.read(lambda connection: reading.blob(connection, raw))

    # Looking after the database

    async def beside(self, runs: Sequence[RunId]) -> Beside:
        """Rows of these runs, for `fsck`; see `store.transfer`."""
        return await self._connections.read(lambda connection: beside(connection, runs, self.tell))

    async def seals(self) -> Seals:
        """Checks every sealed value; see `store.transfer`."""
        return await transfer.seals(self._connections)

    async def integrity(self) -> list[str]:
        """What is wrong with the rows; empty if nothing is."""
        return await self._connections.read(upkeep.integrity)

    async def facts(self) -> dict[str, Any]:
        """Versions, settings and sizes, for a doctor."""
        return await self._connections.read(upkeep.facts)
