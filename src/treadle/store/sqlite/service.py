"""Records of a server in a SQLite file: documents that are compared before they change, logs, notes.

Owns the verbs of `store.service` on a file. Promises their contract. Must not know a rule. One thread writes, so the
numbers of a log come from its head without a lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import apsw

from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.gates import GateCount
from treadle.store.packing import pack, unpack
from treadle.store.port import Json, StoredDocument
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
    CHAINED,
    Changes,
    Entry,
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
from treadle.store.sqlite import writing
from treadle.store.sqlite.queries import SQL

NEVER = (1 << 63) - 1


class SqliteService:
    """The verbs of `store.service`, for a store with a writer and a reader."""

    tell: Tell
    _write: Callable[..., Any]
    _read: Callable[..., Any]

    async def put_document(
        self, kind: str, name: str, hash: str, body: Json, expected: int | None = None
    ) -> StoredDocument:
        packed = pack(body) if body is not None else None
        put: StoredDocument = await self._write(
            lambda connection: writing.put_document(connection, kind, name, hash, packed, expected)
        )
        return put

    async def write(self, changes: Changes) -> Written:
        packed = SqliteChanges(changes)
        written: Written = await self._write(packed.write)
        return written

    async def note(self, key: str) -> Note | None:
        found: Note | None = await self._read(lambda connection: _note(connection, key))
        return found

    async def drop_notes(self, before_at: int) -> int:
        def work(connection: apsw.Connection) -> int:
            return sum(_changed(connection, name, (before_at,)) for name in ("drop_notes", "drop_marked"))

        dropped: int = await self._write(work)
        return dropped

    async def entries(
        self,
        log: str,
        subject: str | None = None,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 100,
    ) -> list[LogEntry]:
        given = {"log": log, "before": before if before is not None else NEVER}
        name = "newest_entries"
        if after is not None:
            name, given["after"] = "next_entries", after
        if subject is not None:
            name, given["subject"] = f"{name}_about", subject
        found: list[LogEntry] = await self._read(lambda connection: _entries(connection, name, given, limit, self.tell))
        return found

    async def revise(self, log: str, id: int, body: Json) -> bool:
        check_unchained(log)
        packed = pack(body)

        def work(connection: apsw.Connection) -> bool:
            kept = connection.execute(SQL["read_entry"], (log, id)).fetchone()
            if kept is not None:
                sealed = seal(packed, about_entry(log, id, *kept))
                connection.execute(SQL["revise_entry"], (sealed, log, id))
            return kept is not None

        known: bool = await self._write(work)
        return known

    async def decisions(self, run: RunId, after: int = 0, limit: int | None = None) -> list[int]:
        def work(connection: apsw.Connection) -> list[int]:
            rows = connection.execute(SQL["decisions"], (run, after, -1 if limit is None else limit))
            return [seq for (seq,) in rows]

        found: list[int] = await self._read(work)
        return found

    async def count_runs(self, workflow: str | None = None, since: int | None = None) -> list[RunCount]:
        given = {"workflow": workflow, "since": since}

        def work(connection: apsw.Connection) -> list[RunCount]:
            return [
                RunCount(name, RunStatus(status), runs)
                for name, status, runs in connection.execute(SQL["count_runs"], given)
            ]

        found: list[RunCount] = await self._read(work)
        return found

    async def count_gates(self, now: int) -> list[GateCount]:
        found: list[GateCount] = await self._read(
            lambda connection: [GateCount(*row) for row in connection.execute(SQL["count_gates"], (now,))]
        )
        return found

    async def prune(self, log: str, before_at: int, keep: int = 0) -> int:
        gone: int = await self._write(lambda connection: _prune(connection, log, before_at, keep))
        return gone

    async def verify_log(self, log: str) -> LogVerdict:
        async def head_of(log: str) -> LogHead:
            head: LogHead = await self._read(lambda connection: _head(connection, log))
            return head

        async def rows_of(log: str, after: int, limit: int) -> list[KeptRow]:
            rows: list[KeptRow] = await self._read(lambda connection: _rows(connection, log, after, limit))
            return rows

        return await verify_chain(log, head_of, rows_of)


class SqliteChanges:
    """Changes as bytes, made before the transaction begins."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._notes = [
            (note.key, note.at, seal(pack(note.body), about_note(note.key, note.at))) for note in changes.notes
        ]
        self._bodies = [pack(one.body) if one.body is not None else None for one in changes.documents]
        self._entries = SqliteEntries(changes.entries)

    def write(self, connection: apsw.Connection) -> Written:
        """Writes the changes inside a transaction. Raises `StoreConflict`; then the transaction has to be undone."""
        changes = self._changes
        connection.executemany(SQL["drop_note"], [(key,) for key in changes.forgotten])
        for row in self._notes:
            if not _changed(connection, "add_note", row):
                raise duplicate_note(row[0])
        connection.executemany(SQL["drop_document"], changes.removed)
        documents = [
            writing.put_document(connection, one.kind, one.name, one.hash, body, one.expected)
            for one, body in zip(changes.documents, self._bodies, strict=True)
        ]
        return Written(documents, self._entries.written(connection))


class SqliteEntries:
    """Entries of logs as bytes, made before the transaction begins."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = [(entry, pack(entry.body)) for entry in entries]

    def write(self, connection: apsw.Connection) -> list[LogHead]:
        """Appends the entries inside a transaction. Returns what the head of each one's log was after it."""
        heads: dict[str, LogHead] = {}
        after: list[LogHead] = []
        rows: list[tuple[Any, ...]] = []
        for entry, content in self._entries:
            log = entry.log
            head = heads[log] = (heads.get(log) or _next_head(connection, log)).after(log, entry, content)
            after.append(head)
            sealed = seal(content, about_entry(log, head.count, entry.subject, entry.at))
            rows.append((log, head.count, entry.subject, entry.at, sealed, head.hash if log in CHAINED else None))
        connection.executemany(SQL["append_entry"], rows)
        for log, head in heads.items():
            _write_head(connection, log, head)
        return after

    def written(self, connection: apsw.Connection) -> list[LogEntry]:
        """The same. Returns the entries."""
        heads = self.write(connection)
        return [
            LogEntry(entry.log, head.count, entry.subject, entry.at, unpack(content), _shown(entry.log, head))
            for head, (entry, content) in zip(heads, self._entries, strict=True)
        ]


def _shown(log: str, head: LogHead) -> str:
    return head.hash.hex() if log in CHAINED else ""


def _head(connection: apsw.Connection, log: str) -> LogHead:
    row: tuple[Any, ...] | None = connection.execute(SQL["read_head"], (log,)).fetchone()
    return LogHead(*row) if row is not None else LogHead()


def _next_head(connection: apsw.Connection, log: str) -> LogHead:
    """The head to append to."""
    head = _head(connection, log)
    if log in CHAINED:
        return head
    last: int = connection.execute(SQL["last_entry"], (log,)).get or 0
    return LogHead(max(head.count, last), head.hash, head.pruned, head.pruned_hash)


def _write_head(connection: apsw.Connection, log: str, head: LogHead) -> None:
    connection.execute(SQL["write_head"], (log, head.count, head.hash, head.pruned, head.pruned_hash))


def _note(connection: apsw.Connection, key: str) -> Note | None:
    row: tuple[Any, ...] | None = connection.execute(SQL["read_note"], (key,)).fetchone()
    if row is None:
        return None
    at, body = row
    try:
        return Note(key, read(body, about_note(key, at), unpack), at)
    except Unreadable:
        raise note_damaged(connection.filename, key) from None


def _entries(connection: apsw.Connection, name: str, given: dict[str, Any], limit: int, tell: Tell) -> list[LogEntry]:
    log, found = given["log"], []
    rows = connection.execute(SQL[name], given)
    try:
        for id, subject, at, body, hash in rows if limit > 0 else ():
            try:
                content = read(body, about_entry(log, id, subject, at), unpack)
            except Unreadable:
                tell(entry_damaged(connection.filename, log, id))
                continue
            found.append(LogEntry(log, id, subject, at, content, hash.hex() if hash else ""))
            if len(found) >= limit:
                break
    finally:
        rows.close(True)  # an unfinished query would hold its snapshot and block checkpoints
    return found


def _prune(connection: apsw.Connection, log: str, before_at: int, keep: int) -> int:
    young = connection.execute(SQL["first_young_entry"], (log, before_at)).get
    kept = connection.execute(SQL["first_kept_entry"], (log, keep)).get
    first = min(NEVER if young is None else young, NEVER if kept is None else kept)
    last: tuple[Any, ...] | None = connection.execute(SQL["last_entry_before"], (log, first)).fetchone()
    if last is None:
        return 0
    number, hash = last
    head = _next_head(connection, log)
    _write_head(connection, log, LogHead(head.count, head.hash, number, hash or head.pruned_hash))
    return _changed(connection, "drop_entries", (log, first))


def _rows(connection: apsw.Connection, log: str, after: int, limit: int) -> list[KeptRow]:
    rows = connection.execute(
        f"{SQL['next_entries']} LIMIT :limit", {"log": log, "after": after, "before": NEVER, "limit": limit}
    )
    return [
        (id, subject, at, unseal(body, about_entry(log, id, subject, at)), hash) for id, subject, at, body, hash in rows
    ]


def _changed(connection: apsw.Connection, name: str, given: Sequence[Any]) -> int:
    connection.execute(SQL[name], given)
    return connection.changes()
