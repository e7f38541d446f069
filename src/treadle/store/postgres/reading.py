"""Queries of the database: rows → the port's records.

Owns every SELECT of a verb. Each function gets a connection and runs one query. Must not write.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import asyncpg
import msgspec

from treadle.errors import StoreDamaged
from treadle.model.events import Event
from treadle.model.ids import RunId, TimerId
from treadle.store.gates import GatePlace, fits, quoted
from treadle.store.packing import unpack, unpack_answer, unpack_wish
from treadle.store.port import (
    GateQuery,
    GateRow,
    InboxAnswer,
    InboxRequest,
    KeptRequest,
    KnownRequest,
    OutboxRow,
    StoredDocument,
    TimerRow,
)
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.run_queries import numbered
from treadle.store.postgres.values import DATABASE, PostgresValues, block_of, checked, effects_of
from treadle.store.rows import gate_of, kept_rows
from treadle.store.seals import (
    Tell,
    Unreadable,
    about_answer,
    about_document,
    about_request,
    document_damaged,
    read,
    request_damaged,
)

NEVER = (1 << 63) - 1
Span = tuple[date, date]


class Recent:
    """The days whose partitions of history are read first: most runs that are read live today."""

    def __init__(self) -> None:
        self.span: Span = (date.min, date.min)

    def seen(self, day: date) -> None:
        """Notes that it is at least this day."""
        if day > self.span[1]:
            self.span = (day - timedelta(days=1), day)


async def history(
    connection: asyncpg.Connection, recent: Recent, run: RunId, after: int, limit: int | None
) -> list[Event]:
    blocks: list[bytes] = []
    known: Span | None = recent.span
    while known is not None:
        first, last = known
        sql = SQL["read_history"].replace("$4", f"'{first}'").replace("$5", f"'{last}'")
        rows = await connection.fetch(sql, run, after, limit)
        blocks = [block_of(run, row[2], row[3]) for row in rows if row[3] is not None]
        known = next(((row[0], row[1]) for row in rows if row[0] < first or row[1] > last), None)
        if known is not None:
            recent.seen(known[1])
    values = PostgresValues(connection)
    unpacked = await values.decode(values.events, [run], blocks)
    return [event for block in unpacked for event in block if event.seq > after][:limit]


async def find_gates(connection: asyncpg.Connection, query: GateQuery, tell: Tell) -> list[GateRow]:
    """After a page of rows of which some do not fit it reads on."""
    found: list[GateRow] = []
    after = query.after
    while len(found) < query.limit:
        statement, given = _of_gates(query, after)
        rows = await connection.fetch(statement, *given)
        for row in rows:
            after = GatePlace(row["opened"], row["run"], row["token"])
            gate = gate_of(row, DATABASE, tell)
            if gate is not None and fits(query, gate):
                found.append(gate)
        if len(rows) < query.limit:
            break
    return found[: query.limit]


def _of_gates(query: GateQuery, after: GatePlace | None) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    given: list[Any] = []

    def add(name: str, *values: Any) -> None:
        conditions.append(numbered(SQL[f"if_gate_{name}"], len(given)))
        given.extend(values)

    for name in ("run", "token", "workflow", "node"):
        if (value := getattr(query, name)) is not None:
            add(name, value)
    if query.overdue_at is not None:
        add("overdue", query.overdue_at)
    if query.text is not None:
        add("text", query.text.casefold())
    if names := quoted(query):
        add("people", names, [msgspec.json.decode(name) for name in names])
    if after is not None:
        add("after", *after)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    given.append(query.limit)
    return f'{SQL["find_gates"]}{where} ORDER BY opened, gates.run COLLATE "C", token LIMIT ${len(given)}', given


async def outbox(
    connection: asyncpg.Connection, shards: Sequence[int], after: int, limit: int, parked: bool, tell: Tell
) -> list[OutboxRow]:
    """At most `limit` rows. After a page of damaged rows only it reads on, so that the list does not end there."""
    found: list[OutboxRow] = []
    while not found:
        rows = await connection.fetch(SQL["read_parked" if parked else "read_outbox"], shards, after, limit)
        if not rows:
            break
        after = rows[-1]["id"]
        sound = await effects_of(connection, rows, tell)
        found = [OutboxRow(row["id"], RunId(row["run"]), effect, row["parked"]) for row, effect in sound]
    return found


async def timers(
    connection: asyncpg.Connection, shards: Sequence[int], until: int | None, limit: int
) -> list[TimerRow]:
    rows = await connection.fetch(SQL["read_timers"], shards, NEVER if until is None else until, limit)
    return [TimerRow(RunId(run), TimerId(timer), due) for run, timer, due in rows]


async def asked(connection: asyncpg.Connection, run: RunId, request: str) -> KnownRequest | None:
    """A request that is kept, with its answer, if it has one."""
    row = await connection.fetchrow(SQL["read_answer"], run, request)
    return KnownRequest(unsealed_answer(run, request, row[0]), row[1]) if row is not None else None


def unsealed_answer(run: RunId, request: str, packed: bytes | None) -> InboxAnswer | None:
    """The answer as a row has it. Raises StoreDamaged."""
    if packed is None:
        return None
    try:
        return read(packed, about_answer(request), lambda content: unpack_answer(request, content))
    except Unreadable:
        raise request_damaged(DATABASE, run, request) from None


async def inbox(connection: asyncpg.Connection, shards: Sequence[int], limit: int, tell: Tell) -> list[InboxRequest]:
    """Requests without an answer. Damaged ones stay in the inbox, and as many more rows are read."""
    found: list[InboxRequest] = []
    wanted = limit
    while True:
        rows = await connection.fetch(SQL["waiting_requests"], shards, wanted)
        found = []
        for id, run, workflow, at, packed, fingerprint in rows:
            try:
                command, revive = read(packed, about_request(run, id, workflow, at, fingerprint), unpack_wish)
            except Unreadable:
                tell(request_damaged(DATABASE, run, id))
                continue
            found.append(InboxRequest(id, RunId(run), command, at, workflow, revive, fingerprint=fingerprint))
        if len(rows) < wanted or len(found) >= limit:
            return found[:limit]
        wanted += len(rows) - len(found)


async def kept(
    connection: asyncpg.Connection, run: RunId | None, request: str | None, limit: int, tell: Tell
) -> list[KeptRequest]:
    rows = await connection.fetch(SQL["kept_requests"], run, request, limit)
    return kept_rows(rows, DATABASE, tell)


async def documents(
    connection: asyncpg.Connection, kind: str, name: str | None, version: int | None, tell: Tell
) -> list[StoredDocument]:
    """Versions of documents. A damaged one is left out of a list; asking for it by name raises StoreDamaged."""
    if name is None and version is None:
        rows = await connection.fetch(SQL["newest_documents"], kind)
    elif name is None:
        rows = await connection.fetch(SQL["documents_of_version"], kind, version)
    elif version is None:
        rows = await connection.fetch(SQL["newest_document"], kind, name)
    else:
        rows = await connection.fetch(SQL["document_version"], kind, name, version)
    found = []
    for kept in rows:
        try:
            found.append(document(*kept))
        except StoreDamaged as problem:
            if name is not None:
                raise
            tell(problem)
    return [one for one in found if one.body is not None]


def document(kind: str, name: str, version: int, hash: str, body: bytes | None) -> StoredDocument:
    """One version from its row. Raises `StoreDamaged`."""
    if body is None:
        return StoredDocument(kind, name, version, hash, None)
    try:
        return StoredDocument(kind, name, version, hash, read(body, about_document(kind, name, version, hash), unpack))
    except Unreadable:
        raise document_damaged(DATABASE, kind, name, version) from None


async def blob(connection: asyncpg.Connection, digest: bytes) -> bytes | None:
    content: bytes | None = await connection.fetchval(SQL["get_blob"], digest)
    return checked(digest, content) if content is not None else None
