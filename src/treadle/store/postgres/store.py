"""The store in a PostgreSQL database.

Owns the verbs of the port on a database: who packs, which transaction. Promises the port's contract to any number of
engines at once, and that what `commit` or `submit` has returned from is as durable as the server's commits. Must not
know a rule, and must not decide who owns what: engines take leases.

Theory of operation
    Runs are spread over a fixed number of shards by their id. An engine leases shards and commits for the runs in them;
    everybody else reads, submits, puts documents.

        caller                      one transaction                                   server
        Batch ──► Plan (packed) ──► the shard's lease, locked and compared
                                    runs (guarded by seq), history, rows: one
                                    statement for each table, rows as arrays
                                    COMMIT                                      ──►   one sync

    Steps and nothing else, the commonest batch, are a single statement that is its own transaction.

    The lock on the lease is the fence: whoever takes the shard over waits for commits under way, and the next commit of
    the old owner finds another epoch. It also puts the commits of one shard in a row, so that the numbers of its outbox
    come in the order of commit and a reader that remembers the last one misses nothing.

Invariants (beside those of the port)
    1. A row of `runs` and the blocks of its history change in one transaction: runs.seq = max(history.seq).
    2. Every digest a block or effect mentions is in `blobs` of its run, in the transaction that mentioned it.
    3. A commit touches runs of the fence's shard only.
    4. Nothing that matters is kept in a session: a pooler may hand every transaction another connection.

Failure cases
    40001, 40P01             nothing has happened; tried again here
    connection lost          before COMMIT: nothing has happened. During it: `StoreUnavailable.outcome_unknown`
    an engine stands still   inside a transaction: the server ends it, and with it the lock on the lease
    database from tomorrow   refused, with both versions

Known limits: answers to requests about runs that never came to be stay. A request's id is its sender's within its run.
The order of creation across shards is that of numbers given before commit: a list that is read while runs are created
may show one late, in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.store.packing import pack, pack_wish
from treadle.store.planning import Plan
from treadle.store.port import (
    Answer,
    Batch,
    Document,
    Fence,
    GateRow,
    Json,
    OutboxRow,
    Request,
    RunQuery,
    RunRow,
    TimerRow,
)
from treadle.store.postgres import reading, upkeep, writing
from treadle.store.postgres.batches import Writing, check_shard
from treadle.store.postgres.connect import migrate
from treadle.store.postgres.transactions import Connections
from treadle.store.rows import digest_of, shard_of

PAYLOAD_MAX = 64 * 1024
"""A larger value is kept once for its run, outside history. Smaller ones cost less to copy than to look up."""
SHARDS = 64
"""More than anybody runs engines on one database, so that they can be spread evenly; few enough to lease one by one."""
CONNECTIONS_MAX = 8
"""Of one process: a commit under way per busy shard, and questions beside them."""


class PostgresStore:
    """See the module's docstring; the verbs are documented in `store.port`. Made by `open`."""

    def __init__(self, connections: Connections, shards: int, payload_max: int) -> None:
        self._connections = connections
        self._payload_max = payload_max
        self.place = connections.place
        self.shards = shards

    @classmethod
    async def open(
        cls, dsn: str, *, shards: int = SHARDS, payload_max: int = PAYLOAD_MAX, connections_max: int = CONNECTIONS_MAX
    ) -> PostgresStore:
        """Opens the database and brings it up to date. How many shards it has is settled by whoever opens it first.
        Raises `StorePlaceError` if it cannot be there."""
        settled = await migrate(dsn, shards)
        return cls(await Connections.open(dsn, connections_max), settled, payload_max)

    async def close(self) -> None:
        """Finishes what was asked, then closes the connections."""
        await self._connections.close()

    async def __aenter__(self) -> PostgresStore:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def shard_of(self, run: RunId) -> int:
        """Whose lease a commit about this run needs."""
        return shard_of(run, self.shards)

    # Writing

    async def commit(self, batch: Batch, fence: Fence) -> list[OutboxRow]:
        written = Writing(Plan(batch, self._payload_max), fence, self.shards)
        if written.is_plain and await self._connections.write_alone(written.step):
            return []
        return await self._connections.write(written)

    async def lease(self, shard: int, owner: str, now: int, ttl_ms: int, evict: bool = False) -> Fence | None:
        return await self._connections.write(
            lambda connection: writing.lease(connection, shard, owner, now, ttl_ms, evict)
        )

    async def release(self, fence: Fence) -> None:
        await self._connections.write(lambda connection: writing.release(connection, fence))

    async def submit(self, request: Request) -> Answer | None:
        # Who waits for an answer asks again and again: that is a question, not a write.
        known, answer = await self._connections.read(
            lambda connection: reading.answer_to(connection, request.run, request.id)
        )
        if not known:
            command, shard = pack_wish(request), self.shard_of(request.run)
            await self._connections.write(lambda connection: writing.keep_request(connection, request, shard, command))
        return answer

    async def put_document(self, kind: str, name: str, hash: str, body: Json) -> Document:
        packed = pack(body) if body is not None else None
        return await self._connections.write(
            lambda connection: writing.put_document(connection, kind, name, hash, packed)
        )

    async def put_blob(self, run: RunId, content: bytes) -> str:
        digest = digest_of(content)
        await self._connections.write(lambda connection: writing.put_blob(connection, run, digest, content))
        return digest

    async def forget(self, runs: Sequence[RunId], fence: Fence, history: bool = True) -> None:
        check_shard(runs, fence, self.shards)
        await self._connections.write(lambda connection: writing.forget(connection, runs, fence, history))

    # Reading

    async def history(self, run: RunId, after: int = 0, limit: int | None = None) -> list[Event]:
        return await self._connections.read(lambda connection: reading.history(connection, run, after, limit))

    async def find_runs(self, query: RunQuery) -> list[RunRow]:
        return await self._connections.read(lambda connection: reading.find_runs(connection, query))

    async def find_gates(self, run: RunId | None = None, limit: int = 1_000) -> list[GateRow]:
        return await self._connections.read(lambda connection: reading.find_gates(connection, run, limit))

    async def outbox(self, shard: int, after: int = 0, limit: int = 1_000, parked: bool = False) -> list[OutboxRow]:
        return await self._connections.read(lambda connection: reading.outbox(connection, shard, after, limit, parked))

    async def timers(self, shard: int, until: int | None = None, limit: int = 1_000) -> list[TimerRow]:
        return await self._connections.read(lambda connection: reading.timers(connection, shard, until, limit))

    async def inbox(self, shard: int, limit: int = 1_000) -> list[Request]:
        return await self._connections.read(lambda connection: reading.inbox(connection, shard, limit))

    async def documents(self, kind: str, name: str | None = None, version: int | None = None) -> list[Document]:
        return await self._connections.read(lambda connection: reading.documents(connection, kind, name, version))

    async def get_blob(self, digest: str) -> bytes | None:
        raw = writing.raw_digest(digest)
        if raw is None:
            return None
        return await self._connections.read(lambda connection: reading.blob(connection, raw))

    # Looking after the database

    async def integrity(self) -> list[str]:
        """What is wrong with the rows; empty if nothing is."""
        return await self._connections.read(upkeep.integrity)

    async def facts(self) -> dict[str, Any]:
        """Versions, settings and sizes, for a doctor."""
        return await self._connections.read(upkeep.facts)
