"""The store in one SQLite file.

Owns the verbs of the port on a file, and the thread and connection of each. Promises the port's contract, and that a
write survives the loss of power once `commit` or `submit` has returned. Must not know a rule, and must not decide which
engine coordinates the file: `ownership` does.

Theory of operation
    Any number of processes may open the file. One of them coordinates (it holds the lock of `ownership` and the newest
    lease) and commits; the others read, `submit`, put documents. In each process

        caller's side                    writer thread                     disk
        Batch ──► Plan (packed) ──►  BEGIN IMMEDIATE
                                     fence, runs, history, rows   ──►  write-ahead log
                                     COMMIT                       ──►  one sync for all that waited
        await  ◄── call_soon_threadsafe

    one thread owns the only connection that writes, and one another for questions that may take a while. A lone chain's
    next step is written on the caller's side, while the thread sleeps (`threads.Writer.at_once`). A question
    that is one step into one index (a run by its id or key) is asked on the caller's side: 18 µs there, 40 to 100 µs
    through a thread. In WAL mode readers never wait for the writer nor it for them.

Invariants (beside those of the port)
    1. `synchronous` is FULL and the journal is a WAL, read back on every connection (`connect`).
    2. A row of `runs` and the blocks of its history change in one transaction: runs.seq = max(history.seq).
    3. Every digest a block or effect mentions is in `blobs`, owned by its run, in the transaction that mentioned it.
    4. An id of the outbox is never used twice.

Failure cases
    disk full            nothing has happened; the next commit that finds room goes on
    COMMIT fails         outcome unknown: `StoreUnavailable.outcome_unknown`, look before repeating
    a sync fails         as above, and the connection is not used again: the pages may be gone (fsyncgate)
    the process dies     the log holds whole transactions only; the next connection replays it
    another process      holds the write lock for BUSY_MS at most, else `StoreUnavailable`
    file from tomorrow   refused, with both versions

Known limits: answers to requests about runs that never came to be stay in the file.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import apsw

from treadle.errors import StoreUnavailable
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.store.packing import sealed_wish
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
from treadle.store.rows import SHARD, digest_of, each
from treadle.store.seals import Seals, Tell, tell_log
from treadle.store.sqlite import private, reading, run_queries, transfer, upkeep, writing
from treadle.store.sqlite.batches import SqliteBatchPlan
from treadle.store.sqlite.connect import connect, migrate
from treadle.store.sqlite.entities import SqliteEntities
from treadle.store.sqlite.faults import damaged_text, unavailable
from treadle.store.sqlite.file_checks import check_file, check_log
from treadle.store.sqlite.following import SqliteFollowing
from treadle.store.sqlite.forgetting import forget
from treadle.store.sqlite.fsck_rows import beside
from treadle.store.sqlite.ownership import Ownership
from treadle.store.sqlite.place import check_place
from treadle.store.sqlite.service import SqliteService
from treadle.store.sqlite.threads import Reader, Writer
from treadle.store.sqlite.work import SqliteWork
from treadle.store.transfer import Beside

PAYLOAD_MAX = 64 * 1024
"""A larger value is kept once, outside history. Smaller ones cost less to copy than to look up."""

BRIEF = 4
"""Decisions that need no thread of their own: a chain's next step, one more beside it. More of them are a crowd, which
gathers the next batch while this one syncs."""

T = TypeVar("T")


class SqliteStore(SqliteFollowing, SqliteService, SqliteWork, SqliteEntities):
    """See the module's docstring; the verbs are documented in `store.port`, `store.service`, `store.work` and
    `store.entities`. Made by `open`."""

    shards = 1

    def __init__(self, path: Path, payload_max: int, read_only: bool, loop: asyncio.AbstractEventLoop) -> None:
        self.path = path
        self._payload_max = payload_max
        self.tell: Tell = tell_log
        """Is called for damaged rows that were left out."""
        check_place(path, read_only)
        other = Ownership.who(path)
        if other is None or other.pid == os.getpid():  # else its owner has checked it
            check_log(path)
        with ExitStack() as opened:
            owned = None if read_only else opened.enter_context(closing(connect(path, writer=True)))
            if owned is not None:
                migrate(owned, path)
            self._here = opened.enter_context(closing(connect(path, read_only=read_only)))
            migrate(self._here, path)
            if not read_only:
                transfer.check_whole(self._here, path)
            behind = opened.enter_context(closing(connect(path, read_only=read_only)))
            opened.pop_all()
        self._values = reading.SqliteValues(behind)
        self._reader = Reader(behind, str(path), "treadle-reader", loop)
        self._writer = Writer(owned, str(path), "treadle-writer", loop) if owned is not None else None

    @classmethod
    async def open(cls, path: str | Path, *, payload_max: int = PAYLOAD_MAX, read_only: bool = False) -> SqliteStore:
        """Opens the file for callers on this event loop; creates it or brings it up to date. Raises `StorePlaceError`
        if a store cannot be kept there, or if it was moved (it may then only be read), and `StoreUnavailable` if its
        first pages are damaged."""
        try:
            return await asyncio.to_thread(cls, Path(path), payload_max, read_only, asyncio.get_running_loop())
        except apsw.Error as problem:
            raise unavailable(problem, str(path)) from problem

    @staticmethod
    def check(path: Path) -> None:
        """Raises `StorePlaceError` if a store cannot be kept there, or the file is not Treadle's. Changes nothing."""
        check_place(path)
        try:
            check_file(path)
        except apsw.Error as problem:
            raise unavailable(problem, str(path)) from problem

    async def close(self) -> None:
        """Finishes all submitted work, then closes the file."""
        await self._reader.close()
        self._here.close()
        if self._writer is not None:
            await self._writer.close()

    async def __aenter__(self) -> SqliteStore:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Writing

    def commit(self, batch: Batch, *fences: Fence) -> Awaitable[list[OutboxRow]]:
        plan = SqliteBatchPlan(batch, self._payload_max)
        work = partial(plan.write, fences=fences, now=self.now)
        return self._writes.at_once(work) if len(batch.commits) <= BRIEF else self._writes.do(work)

    async def lease(self, shard: int, owner: str, now: int | None, ttl_ms: int, evict: bool = False) -> Fence | None:
        moment = self.now() if now is None else now
        return await self._write(lambda connection: writing.lease(connection, shard, owner, moment, ttl_ms, evict))

    async def release(self, fence: Fence) -> None:
        await self._write(lambda connection: writing.release(connection, fence))

    async def submit(self, request: InboxRequest) -> InboxAnswer | None:
        command = sealed_wish(request)
        return await self._write(lambda connection: writing.submit(connection, request, command))

    async def put_blob(self, run: RunId, content: bytes) -> str:
        digest = digest_of(content)
        await self._write(lambda connection: writing.put_blob(connection, run, digest, content))
        return digest

    async def forget(self, runs: Sequence[RunId], *fences: Fence, history: bool = True) -> None:
        await self._write(lambda connection: forget(connection, runs, fences, history))

    # Reading

    async def answer(self, request: InboxRequest) -> InboxAnswer | None:
        known = await self._read(lambda connection: reading.asked(connection, request.id))
        return known.answer if known is not None else await self.submit(request)

    async def find_request(self, run: RunId, request: str) -> KnownRequest | None:
        del run  # an id is unique in the file
        return self._ask_here(lambda connection: reading.asked(connection, request))

    async def history(self, run: RunId, after: int = 0, limit: int | None = None) -> list[Event]:
        return await self._read(lambda connection: reading.history(connection, self._values, run, after, limit))

    async def find_runs(self, query: RunQuery) -> list[RunRow]:
        if run_queries.is_point(query):
            return self._ask_here(lambda connection: run_queries.find_runs(connection, query, self.tell))
        return await self._read(lambda connection: run_queries.find_runs(connection, query, self.tell))

    async def find_gates(self, query: GateQuery = ALL_GATES) -> list[GateRow]:
        return await self._read(lambda connection: reading.find_gates(connection, query, self.tell))

    async def outbox(
        self, shard: int | Sequence[int], after: int = 0, limit: int = 1_000, parked: bool = False
    ) -> list[OutboxRow]:
        if SHARD not in each(shard):
            return []
        return await self._read(
            lambda connection: reading.outbox(connection, self._values, after, limit, parked, self.tell)
        )

    async def timers(self, shard: int | Sequence[int], until: int | None = None, limit: int = 1_000) -> list[TimerRow]:
        if SHARD not in each(shard):
            return []
        return await self._read(lambda connection: reading.timers(connection, until, limit))

    async def inbox(self, shard: int | Sequence[int], limit: int = 1_000) -> list[InboxRequest]:
        if SHARD not in each(shard):
            return []
        return await self._read(lambda connection: reading.inbox(connection, limit, self.tell))

    async def kept(self, run: RunId | None = None, request: str | None = None, limit: int = 1_000) -> list[KeptRequest]:
        return await self._read(lambda connection: reading.kept(connection, run, request, limit, self.tell))

    async def documents(self, kind: str, name: str | None = None, version: int | None = None) -> list[StoredDocument]:
        return await self._read(lambda connection: reading.documents(connection, kind, name, version, self.tell))

    async def get_blob(self, digest: str) -> bytes | None:
        raw = writing.raw_digest(digest)
        if raw is None:
            return None
        return await self._read(lambda connection: reading.get_blob(connection, raw))

    # Looking after the file

    async def beside(self, runs: Sequence[RunId]) -> Beside:
        """Rows of these runs, for `fsck`; see `store.transfer`."""
        return await self._read(lambda connection: beside(connection, runs, self.tell))

    async def seals(self) -> Seals:
        """Checks every sealed value; see `store.transfer`."""
        return await self._read(lambda connection: transfer.seals(connection, str(self.path)))

    async def backup(
        self, target: str | Path, progress: upkeep.Progress | None = None, *, overwrite: bool = False
    ) -> None:
        """Copies the database as it is now to a file, while it is in use. `progress` is called with (pages left, pages
        in all), on another thread. `overwrite`: an existing target is replaced when the copy is complete."""
        await asyncio.to_thread(upkeep.backup, self.path, Path(target), progress, overwrite=overwrite)

    async def integrity(self) -> list[str]:
        """What is wrong with the file; empty if nothing is."""
        return await asyncio.to_thread(upkeep.integrity, self.path)

    async def callback_key(self, known: str | None) -> str:
        """The key that signs callback tokens. It is in a file of its own: a copy of the database must not be enough to
        answer in a worker's name. `known`: the key this store had before, or had in another database."""
        return await asyncio.to_thread(private.key_of, self.path, known)

    async def facts(self) -> dict[str, Any]:
        """Versions, settings and sizes, for a doctor."""
        return await asyncio.to_thread(upkeep.facts, self.path)

    @property
    def _writes(self) -> Writer:
        if self._writer is None:
            raise StoreUnavailable(f"{self.path} was opened for reading only")
        return self._writer

    async def _write(self, work: Callable[[apsw.Connection], T]) -> T:
        return await self._writes.do(work)

    async def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        return await self._reader.do(work)

    def _ask_here(self, work: Callable[[apsw.Connection], T]) -> T:
        try:
            return work(self._here)
        except apsw.ConnectionClosedError:
            raise StoreUnavailable(f"{self.path}: the store is closed") from None
        except apsw.Error as problem:
            raise unavailable(problem, str(self.path)) from problem
        except UnicodeDecodeError as problem:
            raise damaged_text(problem, str(self.path)) from problem
