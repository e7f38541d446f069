"""Records of a server in a PostgreSQL database: documents that are compared before they change, logs, notes.

Owns the verbs of `store.service` on a database. Promises their contract to any number of servers at once. Must not know
a rule.

Rows are written in one order (notes by key, documents by kind and name, heads of chained logs by name), so that two
transactions wait for each other and cannot deadlock. The head of a chained log comes last: it is locked until the
commit, and all who append to the log wait for it. Many entries in one `write` cost one commit.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import asyncpg

from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.gates import GateCount
from treadle.store.packing import pack, unpack
from treadle.store.port import Json, StoredDocument
from treadle.store.postgres import writing
from treadle.store.postgres.columns import columns, count, texts
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.transactions import Connections
from treadle.store.postgres.values import DATABASE
from treadle.store.seals import (
    Tell,
    Unreadable,
    about_entry,
    about_note,
    entry_damaged,
    note_damaged,
    read,
    seal,
    unseal,
)
from treadle.store.service import (
    BEGINNING,
    CHAINED,
    Changes,
    KeptRow,
    LogEntry,
    LogHead,
    LogVerdict,
    Note,
    RunCount,
    Written,
    check_unchained,
    duplicate_note,
    verify_chain,
)

NEVER = (1 << 63) - 1


class PostgresService:
    """The verbs of `store.service`, for a store with connections."""

    _connections: Connections
    tell: Tell

    async def put_document(
        self, kind: str, name: str, hash: str, body: Json, expected: int | None = None
    ) -> StoredDocument:
        packed = pack(body) if body is not None else None
        return await self._connections.write(
            lambda connection: writing.put_document(connection, kind, name, hash, packed, expected)
        )

    async def write(self, changes: Changes) -> Written:
        return await self._connections.write(PostgresChanges(changes).write)

    async def note(self, key: str) -> Note | None:
        async def work(connection: asyncpg.Connection) -> Note | None:
            row = await connection.fetchrow(SQL["read_note"], key)
            if row is None:
                return None
            at, body = row
            try:
                return Note(key, read(body, about_note(key, at), unpack), at)
            except Unreadable:
                raise note_damaged(DATABASE, key) from None

        return await self._connections.read(work)

    async def drop_notes(self, before_at: int) -> int:
        async def work(connection: asyncpg.Connection) -> int:
            return sum(
                [count(await connection.execute(SQL[name], before_at)) for name in ("drop_notes", "drop_marked")]
            )

        return await self._connections.write(work)

    async def entries(
        self,
        log: str,
        subject: str | None = None,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 100,
    ) -> list[LogEntry]:
        end = before if before is not None else NEVER
        found: list[LogEntry] = []
        while len(found) < limit:  # once, unless some are damaged: then as many more are read
            wanted = limit - len(found)
            rows = await self._connections.read(partial(_kept, log, subject, end, after, wanted))
            for id, subject_of, at, content, hash in rows:
                if content is None:
                    self.tell(entry_damaged(DATABASE, log, id))
                else:
                    found.append(LogEntry(log, id, subject_of, at, unpack(content), hash.hex() if hash else ""))
            if len(rows) < wanted:
                break
            if after is not None:
                after = rows[-1][0]
            else:
                end = rows[-1][0]
        return found

    async def revise(self, log: str, id: int, body: Json) -> bool:
        check_unchained(log)
        packed = pack(body)

        async def work(connection: asyncpg.Connection) -> bool:
            kept = await connection.fetchrow(SQL["read_entry"], log, id)
            if kept is None:
                return False
            sealed = seal(packed, about_entry(log, id, *kept))
            return bool(count(await connection.execute(SQL["revise_entry"], log, id, sealed)))

        return await self._connections.write(work)

    async def decisions(self, run: RunId, after: int = 0, limit: int | None = None) -> list[int]:
        async def work(connection: asyncpg.Connection) -> list[int]:
            return [row[0] for row in await connection.fetch(SQL["decisions"], run, after, limit)]

        return await self._connections.read(work)

    async def count_runs(self, workflow: str | None = None, since: int | None = None) -> list[RunCount]:
        async def work(connection: asyncpg.Connection) -> list[RunCount]:
            rows = await connection.fetch(SQL["count_runs"], workflow, since)
            return [RunCount(name, RunStatus(status), runs) for name, status, runs in rows]

        return await self._connections.read(work)

    async def count_gates(self, now: int) -> list[GateCount]:
        async def work(connection: asyncpg.Connection) -> list[GateCount]:
            return [GateCount(*row) for row in await connection.fetch(SQL["count_gates"], now)]

        return await self._connections.read(work)

    async def prune(self, log: str, before_at: int, keep: int = 0) -> int:
        return await self._connections.write(lambda connection: _prune(connection, log, before_at, keep))

    async def verify_log(self, log: str) -> LogVerdict:
        async def head_of(log: str) -> LogHead:
            row = await self._connections.read(lambda connection: connection.fetchrow(SQL["read_head"], log))
            return LogHead(*row) if row is not None else LogHead()

        async def rows_of(log: str, after: int, limit: int) -> list[KeptRow]:
            return await self._connections.read(partial(_kept, log, None, NEVER, after, limit))

        return await verify_chain(log, head_of, rows_of)


class PostgresChanges:
    """Changes as bytes, made before the transaction begins; may be written again in another."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        notes = sorted(changes.notes, key=lambda note: note.key)
        self._notes = [(note.key, note.at, seal(pack(note.body), about_note(note.key, note.at))) for note in notes]
        self._bodies = [pack(one.body) if one.body is not None else None for one in changes.documents]
        self._contents = [pack(entry.body) for entry in changes.entries]

    async def write(self, connection: asyncpg.Connection) -> Written:
        """Writes the changes inside a transaction. Raises `StoreConflict`; then the transaction has to be undone."""
        changes = self._changes
        if changes.forgotten:
            await connection.execute(SQL["forget_notes"], texts(sorted(changes.forgotten)))
        for row in self._notes:
            if not count(await connection.execute(SQL["add_note"], *row)):
                raise duplicate_note(row[0])
        for kind, name in sorted(changes.removed):
            await connection.execute(SQL["drop_document"], kind, name)
        documents = await self._put_documents(connection)
        return Written(documents, await self._append(connection) if changes.entries else [])

    async def _put_documents(self, connection: asyncpg.Connection) -> list[StoredDocument]:
        changes = self._changes.documents
        made: dict[int, StoredDocument] = {}
        for place in sorted(range(len(changes)), key=lambda place: (changes[place].kind, changes[place].name)):
            one = changes[place]
            made[place] = await writing.put_document(
                connection, one.kind, one.name, one.hash, self._bodies[place], one.expected
            )
        return [made[place] for place in range(len(changes))]

    async def _append(self, connection: asyncpg.Connection) -> list[LogEntry]:
        heads = {
            log: await _hold_head(connection, log)
            for log in sorted({entry.log for entry in self._changes.entries} & CHAINED)
        }
        free = sum(entry.log not in CHAINED for entry in self._changes.entries)
        numbers = iter([row[0] for row in await connection.fetch(SQL["next_entry_ids"], free)] if free else [])
        rows: list[tuple[Any, ...]] = []
        for entry, content in zip(self._changes.entries, self._contents, strict=True):
            hash = None
            if entry.log in CHAINED:
                heads[entry.log] = head = heads[entry.log].after(entry.log, entry, content)
                id, hash = head.count, head.hash
            else:
                id = next(numbers)
            sealed = seal(content, about_entry(entry.log, id, entry.subject, entry.at))
            rows.append((entry.log, id, entry.subject, entry.at, sealed, hash))
        await connection.execute(SQL["append_entries"], *columns(rows))
        for log, head in heads.items():
            await _write_head(connection, log, head)
        return [
            LogEntry(log, id, subject, at, unpack(content), hash.hex() if hash else "")
            for (log, id, subject, at, _, hash), content in zip(rows, self._contents, strict=True)
        ]


async def _hold_head(connection: asyncpg.Connection, log: str) -> LogHead:
    await connection.execute(SQL["begin_head"], log, BEGINNING)
    return LogHead(*await connection.fetchrow(SQL["hold_head"], log))


async def _write_head(connection: asyncpg.Connection, log: str, head: LogHead) -> None:
    await connection.execute(SQL["write_head"], log, head.count, head.hash, head.pruned, head.pruned_hash)


async def _kept(
    log: str, subject: str | None, before: int, after: int | None, limit: int, connection: asyncpg.Connection
) -> list[KeptRow]:
    name = "newest_entries" if after is None else "next_entries"
    given: list[Any] = [log, before, limit, *([] if after is None else [after])]
    if subject is not None:
        name = f"{name}_about"
        given.append(subject)
    return [
        (id, about, at, unseal(body, about_entry(log, id, about, at)), hash)
        for id, about, at, body, hash in await connection.fetch(SQL[name], *given)
    ]


async def _prune(connection: asyncpg.Connection, log: str, before_at: int, keep: int) -> int:
    head = await _hold_head(connection, log) if log in CHAINED else None
    young = await connection.fetchval(SQL["first_young_entry"], log, before_at)
    kept = await connection.fetchval(SQL["first_kept_entry"], log, keep)
    first = min(NEVER if young is None else young, NEVER if kept is None else kept)
    last = await connection.fetchrow(SQL["last_entry_before"], log, first)
    if last is None:
        return 0
    if head is not None:
        await _write_head(connection, log, LogHead(head.count, head.hash, last["id"], last["hash"]))
    return count(await connection.execute(SQL["drop_entries"], log, first))
